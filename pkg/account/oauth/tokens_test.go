package oauth_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/provider"
)

// refreshing are the providers that issue refresh tokens where tokens are kept, and whether they rotate them.
var refreshing = map[string]bool{
	"google": false, "amazon": false, "gitlab": true, "discord": true, "oidc": false, "apple": false,
	"microsoft": false, "slack": true,
}

func TestKeptTokens(t *testing.T) {
	each(t, oauth2Names, func(t *testing.T, s *provider.Server, name string) {
		p := keeper(t, s, name)
		l := goes(t, s, p)
		tokens := l.mustFinish(t).Tokens
		rotates, refreshes := refreshing[name]
		if tokens == nil || !s.Accepts(name, tokens.Access) || (tokens.Refresh != "") != refreshes ||
			tokens.Scope == "" || strings.Contains(tokens.Scope, ",") {
			t.Fatalf("the tokens are %#v with the scope %q", tokens, tokens.Scope)
		}
		if name != "github" && time.Until(tokens.Expires) < 30*time.Minute ||
			name == "github" && !tokens.Expires.IsZero() {
			t.Errorf("they expire at %v", tokens.Expires)
		}
		encoded, err := json.Marshal(tokens)
		if err != nil {
			t.Fatal(err)
		}
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "tokens", *tokens)
		l.free(t, "a text",
			fmt.Sprintf("%v %+v %#v %s %s %s", *tokens, tokens, *tokens, *tokens, encoded, logged.String()))
		if !refreshes {
			return
		}
		next, err := p.Refresh(t.Context(), tokens.Refresh)
		if err != nil {
			t.Fatal(err)
		}
		if next.Access == tokens.Access || !s.Accepts(name, next.Access) ||
			(next.Refresh != tokens.Refresh) != rotates || next.Refresh == "" || next.Scope != tokens.Scope {
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

// Providers send other than whole numbers of seconds. What says nothing is as if it were absent.
func TestFormsOfExpiresIn(t *testing.T) {
	s := start(t)
	p := keeper(t, s, "google")
	for sent, want := range map[string]time.Duration{
		`3599`: 3599 * time.Second, `3599.0`: 3599 * time.Second, `"3599"`: 3599 * time.Second,
		`" 3599 "`: 3599 * time.Second, `"3599.9"`: 3599 * time.Second,
		`3.6e3`: time.Hour, `""`: 0, `null`: 0, `0`: 0, `-1`: 0, `"never"`: 0, `true`: 0, `{}`: 0, `[3599]`: 0,
		`"NaN"`: 0, `1e-3`: 0, `1e300`: 1 << 30 * time.Second,
	} {
		before := time.Now()
		s.Up()
		goes(t, s, p)
		s.TokenError(200, `{"access_token":"x","token_type":"Bearer","scope":"a\ud800","expires_in":`+sent+`}`)
		got, err := p.Refresh(t.Context(), "refresh")
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		if lasts := got.Expires.Sub(before); want == 0 && !got.Expires.IsZero() ||
			want != 0 && (lasts < want || lasts > want+kit.Limit) {
			t.Errorf("%s: the token expires at %v, in %v", sent, got.Expires, lasts)
		}
		if got.Access != "x" {
			t.Errorf("%s: the access token is lost", sent)
		}
	}
}

// Standard codes of errors are reported, others are not: they may be anything.
func TestErrorsHaveTheCodeOfTheProvider(t *testing.T) {
	s := start(t)
	for _, name := range []string{"github", "oidc"} {
		p := client(t, s, name, 0)
		for code, want := range map[string]string{
			"invalid_grant": "(invalid_grant)", "invalid_scope": "(invalid_scope)",
			"invalid_client": "(invalid_client)", "consent_required": "(consent_required)",
			"server_error": "(server_error)", "made_up": "(with a code of its own)",
		} {
			s.Up()
			l := goes(t, s, p)
			s.TokenError(400, `{"error":"`+code+`"}`)
			if _, err := l.client.Finish(t.Context(), l.finish); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, at the token endpoint: %v, want %s", code, err, want)
			}
			s.Up()
			l = goes(t, s, p)
			l.finish.Query.Del("code")
			l.finish.Query.Set("error", code)
			if _, err := l.client.Finish(t.Context(), l.finish); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, in the callback: %v, want %s", code, err, want)
			}
		}
	}
}
