package enrollment

import (
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

// EnrollmentUUID is the uuid of what a session sets up: another session can't confirm it.
func EnrollmentUUID(session string) string { return record.KindEnrollment + secret.Hex(session) }
