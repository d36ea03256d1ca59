package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// typed writes a CEL value as JSON that keeps its type: {"int": "1"}.
func typed(value ref.Val) any {
	switch v := value.(type) {
	case types.Null:
		return answer{"null": true}
	case types.Bool:
		return answer{"bool": bool(v)}
	case types.Int:
		return answer{"int": strconv.FormatInt(int64(v), 10)}
	case types.Uint:
		return answer{"uint": strconv.FormatUint(uint64(v), 10)}
	case types.Double:
		return answer{"double": strconv.FormatFloat(float64(v), 'g', -1, 64)}
	case types.String:
		return answer{"string": string(v)}
	case types.Bytes:
		return answer{"bytes": base64.StdEncoding.EncodeToString(v)}
	case types.Timestamp:
		return answer{"timestamp": v.Time.Format(time.RFC3339Nano)}
	case types.Duration:
		return answer{"duration": strconv.FormatInt(int64(v.Duration), 10) + "ns"}
	case *types.Optional:
		if !v.HasValue() {
			return answer{"optional": []any{}}
		}
		return answer{"optional": []any{typed(v.GetValue())}}
	case *types.Type:
		return answer{"type": v.TypeName()}
	case *types.Err:
		return answer{"error": v.Error()}
	}
	if value.Type().TypeName() == "kubernetes.claims" || value.Type().TypeName() == "kubernetes.UserInfo" {
		return opaque(value)
	}
	switch v := value.(type) {
	case traits.Mapper:
		pairs := []any{}
		for each := v.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			pairs = append(pairs, []any{typed(key), typed(v.Get(key))})
		}
		return answer{"map": pairs}
	case traits.Lister:
		elements := []any{}
		for each := v.Iterator(); each.HasNext() == types.True; {
			elements = append(elements, typed(each.Next()))
		}
		return answer{"list": elements}
	}
	return opaque(value)
}

func opaque(value ref.Val) any {
	var text string
	if converted, ok := value.ConvertToType(types.StringType).(types.String); ok {
		text = string(converted)
	} else {
		text = fmt.Sprint(value.Value())
	}
	return answer{"opaque": answer{"type": value.Type().TypeName(), "string": text}}
}
