//go:build plainclaims

package main

import (
	"encoding/json"
	_ "unsafe" // for linkname

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Until 1.33 claims and the user reach CEL as plain maps.

//go:linkname convertObjectToUnstructured k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.convertObjectToUnstructured
func convertObjectToUnstructured(object any) (*unstructured.Unstructured, error)

//go:linkname convertUserInfoToUnstructured k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.convertUserInfoToUnstructured
func convertUserInfoToUnstructured(info user.Info) (*unstructured.Unstructured, error)

func claimsInput(claims map[string]json.RawMessage) (any, error) {
	converted, err := convertObjectToUnstructured(&claims)
	if err != nil {
		return nil, err
	}
	return converted.Object, nil
}

func userInput(info user.Info) (any, error) {
	converted, err := convertUserInfoToUnstructured(info)
	if err != nil {
		return nil, err
	}
	return converted.Object, nil
}

func withoutEgress(entry apiserver.JWTAuthenticator) apiserver.JWTAuthenticator { return entry }
