//go:build !plainclaims

package main

import (
	"encoding/json"
	_ "unsafe" // for linkname

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// Since 1.34 claims and the user reach CEL as lazy objects of the authenticator's own making, and nothing else shows
// their behaviour. The names are stable over the minors that are compared; a build fails where one is gone.

//go:linkname newClaimsValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newClaimsValue
func newClaimsValue(claims map[string]json.RawMessage) *lazy.MapValue

//go:linkname newUserInfoValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newUserInfoValue
func newUserInfoValue(info user.Info) *lazy.MapValue

func claimsInput(claims map[string]json.RawMessage) (any, error) { return newClaimsValue(claims), nil }

func userInput(info user.Info) (any, error) { return newUserInfoValue(info), nil }

// withoutEgress takes away what the oracle has not: there is no egress here, and validation has seen it.
func withoutEgress(entry apiserver.JWTAuthenticator) apiserver.JWTAuthenticator {
	entry.Issuer.EgressSelectorType = ""
	return entry
}
