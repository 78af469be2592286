package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const (
	// expLeeway is how long after its expiry an ID token is accepted, because clocks differ.
	expLeeway = time.Minute

	// nbfLeeway is how long before nbf it is accepted. Some providers that send nbf have clocks that are minutes ahead.
	nbfLeeway = 5 * time.Minute
)

// identifying are the claims that identify the user and the audience of an ID token: they are used only if they need no
// repair.
var identifying = []string{
	"iss", "sub", "aud", "azp", "exp", "nbf", "nonce", "at_hash",
	"tid", "oid", // Microsoft's
	"team_id", slackClaims + "team_id",
}

// verify returns the claims of an ID token that is for this login.
func (p *oidcProvider) verify(ctx context.Context, d *discovery, token *oauth2.Token,
	nonce string) (claims object.Object, changes []string, err error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, nil, errs.New(errs.Invalid, "%s returned no ID token", p.transport.name)
	}
	if err := p.checkForm(raw, d.Algorithms); err != nil {
		return nil, nil, err
	}
	keys := &recordingKeySet{KeySet: d.keys}
	// The library checks only the signature: it would not report other errors.
	verifier := oidc.NewVerifier(p.issuer, keys, &oidc.Config{
		SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true, SupportedSigningAlgs: d.Algorithms,
	})
	idToken, err := verifier.Verify(ctx, raw)
	switch {
	case ctx.Err() != nil:
		return nil, nil, p.transport.unavailable(ctx, ctx.Err())
	case keys.err != nil:
		return nil, nil, knownError(keys.err, p.refused("is signed with none of the keys at its jwks_uri"))
	case err != nil:
		return nil, nil, p.refused("is malformed")
	}
	var text json.RawMessage
	if err := idToken.Claims(&text); err != nil {
		return nil, nil, p.refused("has no claims")
	}
	if claims, changes, err = p.transport.parse(text, identifying...); err != nil {
		return nil, nil, err
	}
	if err := p.checkClaims(idToken, claims, nonce, time.Now()); err != nil {
		return nil, nil, err
	}
	if idToken.AccessTokenHash != "" && idToken.VerifyAccessToken(token.AccessToken) != nil {
		return nil, nil, p.refused("does not match its access token")
	}
	return claims, changes, nil
}

// refused returns the error for a refused ID token.
func (p *oidcProvider) refused(why string) *errs.Error {
	return errs.New(errs.Invalid, "the ID token of %s %s", p.transport.name, why)
}

// checkForm returns the reason why an ID token can't be verified: it is encrypted, or its algorithm is not accepted.
func (p *oidcProvider) checkForm(raw string, accepted []string) error {
	header, _, _ := strings.Cut(raw, ".")
	var head struct {
		Algorithm  string `json:"alg"`
		Encryption string `json:"enc"`
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(header, "="))
	if err != nil || json.Unmarshal(text, &head) != nil {
		return p.refused("is not a JWT")
	}
	if head.Encryption != "" || strings.Count(raw, ".") == 4 {
		return p.refused("is encrypted, which belfry does not support: configure this client at the provider to get " +
			"only signed ones")
	}
	if len(accepted) == 0 {
		accepted = []string{oidc.RS256} // the library's default
	}
	if slices.Contains(accepted, head.Algorithm) {
		return nil
	}
	return p.refused("is signed by " + algorithmName(head.Algorithm) + "; accepted are " +
		strings.Join(accepted, ", ") +
		": configure this client at the provider to get one of those")
}

// algorithmName returns the name of an algorithm for messages. Unknown ones may be any text.
func algorithmName(alg string) string {
	switch alg {
	case "HS256", "HS384", "HS512":
		return alg + ", whose key the client has as well"
	case "none":
		return "nobody (none)"
	case "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "ES256K", "EdDSA", "Ed25519":
		return alg
	default:
		return "an unknown algorithm"
	}
}

// checkClaims returns the reason why an ID token with a valid signature is not for this login.
func (p *oidcProvider) checkClaims(idToken *oidc.IDToken, claims object.Object, nonce string, now time.Time) error {
	const most = 200
	azp, named := claims["azp"]
	client, _ := object.Text(azp)
	switch early := notBefore(claims).Sub(now); {
	case !p.isIssuer(idToken.Issuer):
		return p.refused(fmt.Sprintf("is of the issuer %.*q: expected %q", most, idToken.Issuer, p.issuer))
	case !slices.Contains(idToken.Audience, p.config.ClientID):
		return p.refused(fmt.Sprintf("is for the audience %.*q, and not for the configured clientID", most,
			idToken.Audience[:min(len(idToken.Audience), 5)]))
	case named && client != p.config.ClientID:
		return p.refused(fmt.Sprintf("was made for the client %.*q, and not for the configured clientID", most, client))
	case idToken.Expiry.IsZero():
		return p.refused("has no exp")
	case now.After(idToken.Expiry.Add(expLeeway)):
		return p.refused(fmt.Sprintf("expired %v ago: compare the clocks of both machines",
			now.Sub(idToken.Expiry).Round(time.Second)))
	case early > nbfLeeway:
		return p.refused(fmt.Sprintf("is valid in %v only: compare the clocks of both machines",
			early.Round(time.Second)))
	case idToken.Nonce != nonce:
		return p.refused("is for another login: its nonce differs; start the login again")
	}
	return nil
}

// notBefore is the claim nbf; long ago without it.
func notBefore(claims object.Object) time.Time {
	seconds, err := strconv.ParseFloat(string(claims["nbf"]), 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
