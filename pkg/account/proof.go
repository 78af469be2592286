package account

import (
	"encoding/json"
	"time"

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
	again    bool // the session replaces one whose user has proven again who they are
	limited  bool // the user has a second factor that could not be asked for
}

// proofBy is a proof by one method, now.
func (s *Service) proofBy(provider, method string, aal int) proof {
	return proof{provider: provider, methods: []string{method}, aal: aal, at: s.now()}
}

// proof is how the user of a session has proven who they are, for a session that replaces it.
func (me *Session) proof() proof {
	return proof{provider: me.Type, methods: me.Methods, aal: me.AAL, at: me.AuthenticatedAt, limited: me.limited}
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
	if p.limited {
		session.Set(fieldLimited, true)
	}
}

// proofOf reads the proof of a session. A session of an earlier release began with one factor. An API key has no
// time: nobody proves anything with it.
func proofOf(session object.Object) proof {
	p := proof{aal: 1, at: timeField(session, fieldAuthenticatedAt)}
	p.provider, _ = session.Text("type")
	_ = json.Unmarshal(session[fieldMethods], &p.methods)
	_ = json.Unmarshal(session[fieldAAL], &p.aal)
	p.limited = isMarked(session, fieldLimited)
	if p.at.IsZero() && !isKey(session) {
		p.at = timeField(session, "created")
	}
	return p
}
