package config

import (
	"strings"
	"time"

	"belfry/config/decode"
)

// Authentication configures login providers and the redirects after a login.
type Authentication struct {
	// the name of the cookie of sessions, before which others have it
	Cookie string `key:"cookie" is:"cookie" default:"belfry"`
	// CEL over user: true for users that may receive the events about the security of accounts; Config.Admins by
	// default
	Audit string `key:"audit" is:"expression"`
	// the path of a database of the places of network addresses; "" for none
	Places string `key:"places" is:"file"`

	BrowserRedirects
	MFA MFA `key:"mfa"`

	// origins besides belfry's own that may send state-changing requests
	TrustedOrigins []string  `key:"trustedOrigins" is:"origin"`
	Redirects      []string  `key:"redirects" is:"appRedirect"` // where applications get the codes of their logins
	Limits         Limits    `key:"limits"`
	Deletion       Deletion  `key:"deletion"`
	Passwords      Passwords `key:"passwords"`
	UserStore      string    `key:"userStore" is:"name" default:"Users" reload:"refused=accounts"`
	IdentStore     string    `key:"identStore" is:"name" default:"Idents" reload:"refused=accounts"`
	ProviderSet    `key:"providers" special:"true"`

	// EncryptionKeys are keys of 32 bytes: the first encrypts the tokens of providers and the secrets of authenticator
	// apps, all decrypt them.
	EncryptionKeys []Secret `key:"encryptionKey" list:"words" is:"key32"`

	Passkeys *Passkeys `key:"passkeys"` // nil when not enabled
}

// BrowserRedirects are where browsers continue. Each is a URL, or a path on belfry's own host.
type BrowserRedirects struct {
	SuccessRedirect  string `key:"successRedirect" is:"redirect" default:"/"`
	FailureRedirect  string `key:"failureRedirect" is:"redirect" default:"/login-failed"`
	RegisterRedirect string `key:"registerRedirect" is:"redirect" default:"/register"`
	RecoveryRedirect string `key:"recoveryRedirect" is:"redirect" default:"/recovery"`
	// of logins whose second factor is missing
	SecondFactorRedirect string `key:"secondFactorRedirect" is:"redirect" default:"/second-factor"`
	MailLoginRedirect    string `key:"mailLoginRedirect" is:"redirect" default:"/login/mail"`
	AddressRedirect      string `key:"addressRedirect" is:"redirect" default:"/login/address"` // of changes of address
	// where users manage their account
	AccountRedirect string `key:"accountRedirect" is:"redirect" default:"/account"`
}

// Targets returns the redirects.
func (r *BrowserRedirects) Targets() []string {
	return []string{
		r.SuccessRedirect, r.FailureRedirect, r.RegisterRedirect, r.RecoveryRedirect, r.SecondFactorRedirect,
		r.MailLoginRedirect, r.AddressRedirect, r.AccountRedirect,
	}
}

// MFA selects the users that need a second factor.
type MFA struct {
	Policy   string `key:"policy" word:"true" is:"one off optional required" default:"optional"`
	Required string `key:"required" is:"expression"` // CEL over user: true requires one under any policy; "": nobody
}

// Limits are the rate limits of authentication; 0 is no limit.
type Limits struct {
	// failed logins, registrations and mails per network address and minute
	Address int `key:"address" is:"number 0 1000000" default:"60"`
	// failed logins to one account before further ones are delayed
	Account int `key:"account" is:"number 0 1000" default:"5"`
}

// Deletion is the deletion of accounts by their users.
type Deletion struct {
	Enabled    bool          `key:"enabled" default:"true"`
	Grace      time.Duration `key:"grace" is:"duration 0s 365d" default:"14d"` // between the request and the deletion
	Configured bool          // the configuration has the section
}

// DefaultCookie is the name of the cookie of sessions unless the configuration sets another one.
const DefaultCookie = "belfry"

// Validate refuses tokens that would be kept without a key.
func (a *Authentication) Validate(s *decode.Section) {
	a.Deletion.Configured = s.Has("deletion")
	if s.Value("passkeys.enabled") == false {
		a.Passkeys = nil
	}
	if keeping := a.Keeping(); len(keeping) > 0 && len(a.EncryptionKeys) == 0 && s.Fine("encryptionKey") {
		s.Problem("encryptionKey", "is missing although the tokens of %s are kept; expected 32 random bytes in "+
			"base64, as from: openssl rand -base64 32", strings.Join(keeping, ", "))
	}
}

// Passwords say which new passwords are refused.
type Passwords struct {
	Common bool `key:"common" default:"true"` // the most common ones
	// those whose strength is estimated as less, of 0 to 4; 0: nothing is estimated
	MinScore int64    `key:"minScore" is:"number 0 4"`
	Breached Breached `key:"breached"` // those in the data of breaches
}

// Breached names a server with the range API of Have I Been Pwned; without a URL none is asked.
type Breached struct {
	URL     string        `key:"url" is:"baseURL"`
	Timeout time.Duration `key:"timeout" is:"duration 10ms 10s" default:"1s"`
	// least number of occurrences that refuses a password
	MinCount int64 `key:"minCount" is:"number 1 1000000000" default:"1"`
}

// Validate refuses settings of a server that is not named.
func (*Breached) Validate(s *decode.Section) {
	for _, key := range [...]string{"timeout", "minCount"} {
		if s.Has(key) && !s.Has("url") {
			s.Problem(key, "needs url")
		}
	}
}
