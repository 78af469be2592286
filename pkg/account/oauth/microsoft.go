package oauth

import (
	"cmp"
	"regexp"
	"strings"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Names instead of a tenant, by the accounts that may log in.
const (
	microsoftCommon        = "common"        // all accounts
	microsoftOrganizations = "organizations" // work and school accounts
	microsoftConsumers     = "consumers"     // personal accounts

	// personalTenant is the tenant of personal accounts.
	personalTenant = "9188040d-6c67-4c5b-b112-36a304b66dad"
)

// guid matches the ids of Microsoft's tenants and users.
var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// NewMicrosoft makes the provider of Microsoft's accounts: of a tenant by its id, or common, organizations or
// consumers; "" is common. A tenant's domain is refused, because it can pass to another tenant. BaseURL is the URL of
// the cloud, "" for the global one.
//
// An ID token names the tenant of its user, in tid and in its issuer. The tenant decides who may log in. The claim
// oid identifies the user in that tenant: it is immutable and never reused. The same is true of sub, but oid is the
// same for all applications, so accounts survive a new registration of the application. Neither email nor
// preferred_username identifies a user: the administrators of any tenant can set them.
// https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference
func NewMicrosoft(c config.Microsoft, by Requests) (Provider, error) {
	tenant := strings.ToLower(cmp.Or(c.Tenant, microsoftCommon))
	if !guid.MatchString(tenant) && tenant != microsoftCommon && tenant != microsoftOrganizations &&
		tenant != microsoftConsumers {
		return nil, errs.New(errs.Invalid,
			"tenant: expected common, organizations, consumers, or the id of a tenant (not a domain)")
	}
	base := strings.TrimSuffix(cmp.Or(c.BaseURL, "https://login.microsoftonline.com"), "/")
	at := base + "/" + tenant
	site := oidcSite{
		name:   "microsoft",
		needed: []string{"profile"}, // otherwise there is no oid
		issuedBy: func(iss string) bool {
			of, ok := strings.CutPrefix(iss, base+"/")
			of, isV2 := strings.CutSuffix(of, "/v2.0")
			return ok && isV2 && tenantAccepts(tenant, of)
		},
		id: func(profile object.Object) string { return microsoftID(profile, base) }, idFields: "iss, tid and oid",
	}
	if c.KeepTokens {
		site.needed = append(site.needed, "offline_access")
	}
	c.Site = withDefaults(c.Site, at+"/v2.0", at+"/oauth2/v2.0/authorize", at+"/oauth2/v2.0/token",
		at+"/discovery/v2.0/keys")
	return newSite(site, c.Site, []string{"openid", "email", "profile"}, by), nil
}

// tenantAccepts reports whether users of a tenant may log in.
func tenantAccepts(configured, of string) bool {
	if !guid.MatchString(of) {
		return false
	}
	switch configured {
	case microsoftCommon:
		return true
	case microsoftOrganizations:
		return of != personalTenant
	case microsoftConsumers:
		return of == personalTenant
	default:
		return of == configured
	}
}

// microsoftID is the id of the tenant, which has to be that of the issuer, and that of the user in it.
func microsoftID(profile object.Object, base string) string {
	issuer, _ := profile.Text("iss")
	tenant, _ := profile.Text("tid")
	user, _ := profile.Text("oid")
	if issuer != base+"/"+tenant+"/v2.0" || !guid.MatchString(user) {
		return ""
	}
	return tenant + "." + user
}
