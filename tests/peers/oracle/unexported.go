package main

import (
	"encoding/json"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// Claims and the user reach CEL as lazy objects of the authenticator's own making, and nothing else shows their
// behaviour. The names are stable over the minors that are compared; a build fails where one is gone.

//go:linkname newClaimsValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newClaimsValue
func newClaimsValue(claims map[string]json.RawMessage) *lazy.MapValue

//go:linkname newUserInfoValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newUserInfoValue
func newUserInfoValue(info user.Info) *lazy.MapValue

// The verifier of a distributed claim's issuer is made in the background; with this, authentication waits for it.
//
//go:linkname synchronizeTokenIDVerifierForTest k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.synchronizeTokenIDVerifierForTest
var synchronizeTokenIDVerifierForTest bool

// setNow gives the authenticator a clock, as its own tests do.
func setNow(options *oidc.Options, now func() time.Time) {
	field := reflect.ValueOf(options).Elem().FieldByName("now")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(now))
}
