package login

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"

	"belfry/internal/baseurl"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// metadataPath is the path at which programs find the endpoints of an authorization server (RFC 8414, section 3). If
// the issuer has a path, that path follows this one. belfry also serves the metadata below the base URL, for proxies
// that forward nothing else.
const metadataPath = "/.well-known/oauth-authorization-server"

// metadata has the fields of RFC 8414, section 2, that apply to belfry. A field is present if its default would claim
// more than belfry supports.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	ResponseTypes []string `json:"response_types_supported"`
	ResponseModes []string `json:"response_modes_supported"`
	Grants        []string `json:"grant_types_supported"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// addMetadata adds the pages of the metadata if the base URL can be an issuer, which requires https. During development
// the issuer may be on the local machine, by http.
func addMetadata(set *op.Set) {
	base := baseurl.Parse(set.Contract.BaseURL)
	u, err := url.Parse(base.Origin())
	if err != nil || !base.Secure() && !isLoopback(u.Hostname()) {
		return
	}
	document, err := json.Marshal(metadata{
		Issuer: base.String(), Authorization: base.At(authorizePath), Token: base.At(tokenPath),
		ResponseTypes: []string{"code"}, ResponseModes: []string{"query"}, Grants: []string{"authorization_code"},
		Methods: []string{"none"}, Challenges: []string{"S256"}, NamesIssuer: true,
	})
	if err != nil {
		panic("login: " + err.Error()) // of texts
	}
	set.Page(metadataPath, httpkit.Fixed(httpkit.JSON, document))
	if known := base.WellKnown(metadataPath); known != metadataPath {
		set.Page(known, httpkit.Fixed(httpkit.JSON, document))
	}
}

// isLoopback reports whether a host is the local machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
