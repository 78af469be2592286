package account

import (
	"encoding/json"
	"net/url"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/firstadmin"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Types of the subpackages, by the names that other packages use.

// Limits is guess.Limits.
type Limits = guess.Limits

// Account is admin.Account.
type Account = admin.Account

// Act is record.Act.
type Act = record.Act

// Activity is sessions.Activity.
type Activity = sessions.Activity

// Application is record.Application.
type Application = record.Application

// Client is sessions.Client.
type Client = sessions.Client

// CodeExchange is applications.Exchange.
type CodeExchange = applications.Exchange

// Credentials is passwords.Credentials.
type Credentials = passwords.Credentials

// Deletion is deletion.Config.
type Deletion = deletion.Config

// DeletionPlan is deletion.Plan.
type DeletionPlan = deletion.Plan

// Email is post.Email.
type Email = post.Email

// Flow is providers.Flow.
type Flow = providers.Flow

// FormerCookie is sessions.FormerCookie.
type FormerCookie = sessions.FormerCookie

// HashParams is passwords.HashParams.
type HashParams = passwords.HashParams

// IdentInfo is admin.IdentInfo.
type IdentInfo = admin.IdentInfo

// IssuedSession is sessions.Issued.
type IssuedSession = sessions.Issued

// Key is sessions.Key.
type Key = sessions.Key

// KeyInfo is keys.Info.
type KeyInfo = keys.Info

// LinkOutcome is post.Outcome.
type LinkOutcome = post.Outcome

// MFA is sessions.MFA.
type MFA = sessions.MFA

// MailLogin is post.MailLogin.
type MailLogin = post.MailLogin

// NewKey is keys.New.
type NewKey = keys.New

// NewUser is admin.NewUser.
type NewUser = admin.NewUser

// Notice is post.Notice.
type Notice = post.Notice

// Origin is sessions.Origin.
type Origin = sessions.Origin

// PasskeyAnswer is method.Signed.
type PasskeyAnswer = method.Signed

// PasskeyChallenge is method.Challenge.
type PasskeyChallenge = method.Challenge

// PasskeyInfo is passkeys.Info.
type PasskeyInfo = passkeys.Info

// Passkeys is passkeys.Config.
type Passkeys = passkeys.Config

// PendingLogin is logins.PendingLogin.
type PendingLogin = logins.PendingLogin

// ProtocolError is applications.ProtocolError.
type ProtocolError = applications.ProtocolError

// ProviderToken is providers.ProviderToken.
type ProviderToken = providers.ProviderToken

// Repetition is once.Repetition.
type Repetition = once.Repetition

// RequestedLogin is mails.RequestedLogin.
type RequestedLogin = mails.RequestedLogin

// SecondFactor is method.Answer.
type SecondFactor = method.Answer

// Session is sessions.Session.
type Session = sessions.Session

// SessionInfo is sessions.Info.
type SessionInfo = sessions.Info

// WeakPassword is passwords.WeakPassword.
type WeakPassword = passwords.WeakPassword

// Methods by which a user proves their identity, and types of second factors.
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
	PasskeyType    = record.PasskeyType
)

// Constants of the subpackages.
const (
	DeletionIndex           = deletion.DeletionIndex
	FirstAdminTTL           = firstadmin.TTL
	PendingTTL              = logins.PendingTTL
	DeviceTTL               = notices.DeviceTTL
	NoticeAddress           = notices.NoticeAddress
	NoticeDeleted           = notices.NoticeDeleted
	NoticeDeletion          = notices.NoticeDeletion
	NoticeDisabled          = notices.NoticeDisabled
	NoticeFactorAdded       = notices.NoticeFactorAdded
	NoticeFactorRemoved     = notices.NoticeFactorRemoved
	NoticeKeyAdded          = notices.NoticeKeyAdded
	NoticeKeyRemoved        = notices.NoticeKeyRemoved
	NoticeLoginAdded        = notices.NoticeLoginAdded
	NoticeLoginRemoved      = notices.NoticeLoginRemoved
	NoticePassword          = notices.NoticePassword
	NoticeRecoveryCodes     = notices.NoticeRecoveryCodes
	ActAddress              = record.ActAddress
	ActChanged              = record.ActChanged
	ActConfirmed            = record.ActConfirmed
	ActFirstAdmin           = record.ActFirstAdmin
	ActKept                 = record.ActKept
	ActLoggedIn             = record.ActLoggedIn
	ActPasskey              = record.ActPasskey
	ActPassword             = record.ActPassword
	ActProven               = record.ActProven
	ActRegistered           = record.ActRegistered
	ActUndone               = record.ActUndone
	UsedTTL                 = once.UsedTTL
	PasskeyTTL              = passkeys.TTL
	MaxPassword             = passwords.MaxPassword
	MinPassword             = passwords.MinPassword
	AddressValidated        = post.AddressValidated
	NoticeDevice            = notices.NoticeDevice
	OpenAddressChange       = post.OpenAddressChange
	OpenAddressUndo         = post.OpenAddressUndo
	OpenLogin               = post.OpenLogin
	OpenLoginElsewhere      = post.OpenLoginElsewhere
	OpenRecovery            = post.OpenRecovery
	OpenRegistration        = post.OpenRegistration
	UndoTTL                 = post.UndoTTL
	CallbackPath            = providers.CallbackPath
	FlowTTL                 = providers.FlowTTL
	CodeTTL                 = applications.CodeTTL
	DefaultCookie           = sessions.DefaultCookie
	EnrollDelay             = sessions.EnrollDelay
	InvalidClient           = applications.InvalidClient
	InvalidGrant            = applications.InvalidGrant
	InvalidRequest          = applications.InvalidRequest
	MFAOff                  = sessions.MFAOff
	MFAOptional             = sessions.MFAOptional
	MFARequired             = sessions.MFARequired
	SessionIdleTimeout      = sessions.SessionIdleTimeout
	SessionMaxAge           = sessions.SessionMaxAge
	UnsupportedGrantType    = applications.UnsupportedGrantType
	UnsupportedResponseType = applications.UnsupportedResponseType
)

// Causes of errors.
var (
	ErrDisabled          = sessions.ErrDisabled
	ErrInsufficientScope = sessions.ErrInsufficientScope
	ErrInvalidToken      = sessions.ErrInvalidToken
	ErrMailAsked         = post.ErrMailAsked
	ErrToken             = post.ErrToken
)

// AnswerName is the name of the challenge that an answer is to; "" for a malformed one.
func AnswerName(credential json.RawMessage) string { return passkeys.AnswerName(credential) }

// ChallengeSecret returns the secret of the challenge with a name.
func ChallengeSecret(name string, secrets []string) string {
	return passkeys.ChallengeSecret(name, secrets)
}

// FlowName is the name of the flow that a callback belongs to, "" when its query identifies none.
func FlowName(query url.Values) string { return providers.FlowName(query) }

// IsDisabled reports whether a user is disabled.
func IsDisabled(user store.Stored) bool { return record.IsDisabled(user) }

// MaintainedFields are the fields of users, and of idents, that belfry writes, besides reserved and internal ones.
func MaintainedFields() (users, idents []string) { return record.MaintainedFields() }

// NewBrowser returns a secret for the cookie that identifies the browser of a repetition. It grants no rights.
func NewBrowser() string { return once.NewBrowser() }

// NormalizeAddress returns the form of an e-mail address by which accounts are found. Invalid for text that is not an
// address.
func NormalizeAddress(text string) (string, error) { return record.NormalizeAddress(text) }

// Pending returns the pending login that an error is about; nil for another error.
func Pending(err error) *PendingLogin { return logins.Pending(err) }

// Repeated returns the repetition that an error is about; nil for another error.
func Repeated(err error) *Repetition { return once.Repeated(err) }

// RequireComplete returns an Unauthenticated error with an errs.StepUp for a session whose user has to take a step first.
func RequireComplete(me *Session) error { return sessions.RequireComplete(me) }

// RequireLogin returns Denied for the session of an API key.
func RequireLogin(me *Session) error { return sessions.RequireLogin(me) }

// SetReserved sets the fields of a user that only belfry sets, as rules see them, by the user as it is stored.
func SetReserved(seen, stored object.Object) { record.SetReserved(seen, stored) }
