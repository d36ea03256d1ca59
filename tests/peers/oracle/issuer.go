package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

// cannedReply is what stands for one address in a case's table.
type cannedReply struct {
	Status      int    `json:"status"`
	ContentType string `json:"contentType"`
	Body        string `json:"body"`
}

// cannedIssuer is the network as one authenticator sees it: discovery, the key set, and what the case itself serves.
type cannedIssuer struct {
	discovery string
	issuer    string
	keys      string
	replies   map[string]cannedReply
}

// An address of its own: an issuer's URL may be one that nothing can be appended to.
const keysAddress = "https://keys.oracle.invalid/keys"

const wellKnown = "/.well-known/openid-configuration"

func issuerOf(entry apiserver.JWTAuthenticator, given configurationCase) http.RoundTripper {
	keys := given.Keys
	if own, ok := given.KeysByIssuer[entry.Issuer.URL]; ok {
		keys = own
	}
	discovery := entry.Issuer.DiscoveryURL
	if discovery == "" {
		discovery = strings.TrimSuffix(entry.Issuer.URL, "/") + wellKnown
	}
	if parsed, err := url.Parse(discovery); err == nil {
		discovery = parsed.String() // as a request shows it
	}
	return &cannedIssuer{discovery: discovery, issuer: entry.Issuer.URL, keys: string(keys), replies: given.Replies}
}

func (c *cannedIssuer) RoundTrip(request *http.Request) (*http.Response, error) {
	address := request.URL.String()
	if reply, ok := c.replies[address]; ok {
		return respond(request, reply), nil
	}
	switch {
	case address == c.discovery:
		return discoveryOf(request, c.issuer)
	case strings.HasSuffix(address, wellKnown): // the issuer of a distributed claim
		return discoveryOf(request, strings.TrimSuffix(address, wellKnown))
	case address == keysAddress:
		return respond(request, cannedReply{Body: c.keys}), nil
	}
	return respond(request, cannedReply{Status: http.StatusNotFound, Body: "nothing is here"}), nil
}

func discoveryOf(request *http.Request, issuer string) (*http.Response, error) {
	document, err := json.Marshal(map[string]string{"issuer": issuer, "jwks_uri": keysAddress})
	return respond(request, cannedReply{Body: string(document)}), err
}

func respond(request *http.Request, reply cannedReply) *http.Response {
	status, contentType := reply.Status, reply.ContentType
	if status == 0 {
		status = http.StatusOK
	}
	if contentType == "" {
		contentType = "application/json"
	}
	return &http.Response{
		StatusCode: status,
		Status:     http.StatusText(status),
		Header:     http.Header{"Content-Type": {contentType}},
		Body:       io.NopCloser(strings.NewReader(reply.Body)),
		Request:    request,
	}
}
