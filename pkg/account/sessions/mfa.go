package sessions

import (
	"context"

	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Policies of second factors.
const (
	MFAOff      = "off"      // nobody is asked for one
	MFAOptional = "optional" // who has one is asked for it
	MFARequired = "required" // who has none has to add one
)

// MFA says who needs a second factor. The zero value is MFAOptional.
type MFA struct {
	Policy   string           // "" is MFAOptional
	Required *policy.UserRule // users for whom one is required whatever the policy is; nil: none
}

// of returns the policy for a user as rules see them.
func (m MFA) of(ctx context.Context, user object.Object) string {
	switch {
	case m.Required.Holds(ctx, user):
		return MFARequired
	case m.Policy == "":
		return MFAOptional
	default:
		return m.Policy
	}
}

// MfaOf returns the policy for a user as rules see them.
func (s *Sessions) MfaOf(ctx context.Context, user object.Object) string { return s.MFA.of(ctx, user) }
