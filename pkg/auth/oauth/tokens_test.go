package oauth_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"belfry/pkg/auth/oauth"
	"belfry/pkg/errs"
	"belfry/test/provider"
)

// refreshing are the providers that issue refresh tokens where tokens are kept, and whether they rotate them.
var refreshing = map[string]bool{
	"google": false, "amazon": false, "gitlab": true, "discord": true, "oidc": false, "apple": false, "microsoft": false, "slack": true,
}

func TestKeptTokens(t *testing.T) {
	each(t, oauth2Names, func(t *testing.T, s *provider.Server, name string) {
		p := keeper(t, s, name)
		l := goes(t, s, p)
		tokens := l.mustFinish(t).Tokens
		rotates, refreshes := refreshing[name]
		if tokens == nil || !s.Accepts(name, tokens.Access) || (tokens.Refresh != "") != refreshes || tokens.Scope == "" || strings.Contains(tokens.Scope, ",") {
			t.Fatalf("the tokens are %#v with the scope %q", tokens, tokens.Scope)
		}
		if name != "github" && time.Until(tokens.Expires) < 30*time.Minute || name == "github" && !tokens.Expires.IsZero() {
			t.Errorf("they expire at %v", tokens.Expires)
		}
		encoded, err := json.Marshal(tokens)
		if err != nil {
			t.Fatal(err)
		}
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "tokens", *tokens)
		l.free(t, "a text", fmt.Sprintf("%v %+v %#v %s %s %s", *tokens, tokens, *tokens, *tokens, encoded, logged.String()))
		if !refreshes {
			return
		}
		next, err := p.Refresh(t.Context(), tokens.Refresh)
		if err != nil {
			t.Fatal(err)
		}
		if next.Access == tokens.Access || !s.Accepts(name, next.Access) || (next.Refresh != tokens.Refresh) != rotates || next.Refresh == "" || next.Scope != tokens.Scope {
			t.Errorf("the tokens are not new: scope %q", next.Scope)
		}
	})
}

func TestRefreshReportsProviderErrors(t *testing.T) {
	for name := range refreshing {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			p := keeper(t, s, name)
			l := goes(t, s, p)
			tokens := l.mustFinish(t).Tokens
			fails := func(kind errs.Kind, p oauth.Keeper) {
				t.Helper()
				got, err := p.Refresh(t.Context(), tokens.Refresh)
				if err == nil || errs.KindOf(err) != kind || got != (oauth.Tokens{}) {
					t.Fatalf("%v (%v), want kind %v", err, errs.KindOf(err), kind)
				}
				l.keepsSecrets(t, err)
			}
			s.Down(provider.Token)
			fails(errs.Unavailable, p)
			s.TokenError(503, "oops")
			fails(errs.Unavailable, p)
			s.TokenError(400, `{"error":"temporarily_unavailable"}`)
			fails(errs.Unavailable, p)
			s.TokenError(401, `{"error":"invalid_client"}`)
			fails(errs.Internal, p)
			s.TokenError(307, "")
			fails(errs.Internal, p)
			s.TokenError(400, `{"error":"`+tokens.Refresh+`"}`)
			fails(errs.Denied, p)
			s.Slow(provider.Token)
			fails(errs.Unavailable, clientWith(t, s, name, 200*time.Millisecond, true).(oauth.Keeper))
			s.Up()
			s.Revoke()
			fails(errs.Denied, p)
		})
	}
}
