package errs

import "time"

// Steps that a logged-in user may have to take before they may do something.
const (
	StepSecondFactor   = "second-factor"  // log in with a second factor
	StepReauthenticate = "reauthenticate" // prove their identity again
	StepEnroll         = "enroll"         // add a second factor to the account
)

// StepUp is the cause of an Unauthenticated error for a logged-in user: their request needs a stronger, or a
// more recent, authentication (RFC 9470).
type StepUp struct {
	Step    string
	AAL     int           // needed; 0: that of the session is enough
	MaxAge  time.Duration // of the authentication; with StepReauthenticate
	Factors []string      // with StepSecondFactor at a login: the types that can be used
	Flow    string        // with StepSecondFactor at a login, for a program: to send with the factor
}

func (s *StepUp) Error() string { return "a step is missing: " + s.Step }

// NeedsStepUp returns an Unauthenticated error that says which step is missing.
func NeedsStepUp(s StepUp, format string, args ...any) error {
	return Wrap(&s, Unauthenticated, format, args...)
}
