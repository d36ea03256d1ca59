package main

import (
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// The verifier of a distributed claim's issuer is made in the background; with this, authentication waits for it.
//
//go:linkname synchronizeTokenIDVerifierForTest k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.synchronizeTokenIDVerifierForTest
var synchronizeTokenIDVerifierForTest bool

// setNow gives the authenticator a clock, as its own tests do.
func setNow(options *oidc.Options, now func() time.Time) {
	field := reflect.ValueOf(options).Elem().FieldByName("now")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(now))
}
