package account

import "belfry/pkg/account/record"

// Methods by which somebody proves who they are, and types of second factors.
const (
	MethodPassword = record.MethodPassword
	MethodLink     = record.MethodLink
	MethodCode     = record.MethodCode
	MethodPasskey  = record.MethodPasskey
	MethodTOTP     = record.MethodTOTP
	MethodRecovery = record.MethodRecovery

	FactorTOTP     = record.FactorTOTP
	FactorEmail    = record.FactorEmail
	FactorPasskey  = record.FactorPasskey
	FactorRecovery = record.FactorRecovery

	PasskeyType = record.PasskeyType
)
