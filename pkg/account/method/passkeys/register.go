package passkeys

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/method"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// BeginRegistration makes the challenge for adding a passkey to the account of the logged-in user. Errors: those of
// RequireFresh; Conflict when there are too many.
func (s *Method) BeginRegistration(ctx context.Context, me *sessions.Session) (method.Challenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return method.Challenge{}, err
	}
	if err := s.Sessions.RequireFreshToEnroll(ctx, me); err != nil {
		return method.Challenge{}, err
	}
	// A passkey is two factors, so a limited session may not add one.
	if err := s.Sessions.RequireSecond(ctx, me); err != nil {
		return method.Challenge{}, err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	own, err := s.Descriptors(ctx, me.User.UUID)
	if err != nil {
		return method.Challenge{}, err
	}
	if len(own) >= maxPasskeys {
		return method.Challenge{}, errs.New(errs.Conflict, "you have %d passkeys, the maximum: remove one first",
			len(own))
	}
	address, err := s.Users.Address(ctx, me.User.UUID)
	if err != nil {
		return method.Challenge{}, err
	}
	address = cmp.Or(address, me.User.UUID)
	name, _ := me.Visible.Text("name")
	handle, err := secret.B64.DecodeString(userHandle(me.User.UUID))
	if err != nil {
		return method.Challenge{}, err
	}
	made, challenge, err := s.saveChallenge(ctx, ForRegistration(me))
	if err != nil {
		return method.Challenge{}, err
	}
	text, err := json.Marshal(protocol.CredentialCreation{Response: protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{CredentialEntity: protocol.CredentialEntity{Name: s.Config.RPName},
			ID: s.Config.RPID},
		User: protocol.UserEntity{
			CredentialEntity: protocol.CredentialEntity{Name: address},
			DisplayName:      cmp.Or(strings.TrimSpace(name), address), ID: protocol.URLEncodedBase64(handle),
		},
		Challenge: challenge, Parameters: passkeyAlgorithms(), Timeout: int(TTL.Milliseconds()),
		CredentialExcludeList: own, AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(), ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
		Attestation: protocol.PreferNoAttestation,
	}})
	return method.Challenge{Options: text, Secret: made, Name: challengeName(passkeyChallenge(made))}, err
}

// Add adds a passkey to the account of the logged-in user, by the answer to BeginRegistration.
//
//	Invalid           the answer can't be read, or a passkey can't have the name
//	Denied            the answer does not match the challenge, the origin or the requested options
//	Exists            the credential is already registered
//	Unauthenticated   the session has ended, or has to prove a second factor
func (s *Method) Add(ctx context.Context, name string, a method.Signed, me *sessions.Session) (Info, error) {
	if err := errors.Join(s.requirePasskeys(), sessions.RequireLogin(me)); err != nil {
		return Info{}, err
	}
	// A second factor may have been added to the account since BeginRegistration.
	if err := s.Sessions.RequireSecond(ctx, me); err != nil {
		return Info{}, err
	}
	name = cmp.Or(name, defaultPasskeyName)
	if err := checkPasskeyName(name); err != nil {
		return Info{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(a.Credential)
	if err != nil {
		return Info{}, errCredential(err)
	}
	if err := s.consumeChallenge(ctx, a, ForRegistration(me), record.ActPasskey); err != nil {
		return Info{}, err
	}
	added, err := s.addVerified(ctx, name, a, parsed, me)
	s.Uses.Settle(ctx, ChallengeUUID(a.Secret), err == nil)
	return added, err
}

// addVerified adds a passkey by an answer whose challenge was used up for it.
func (s *Method) addVerified(ctx context.Context, name string, a method.Signed,
	parsed *protocol.ParsedCredentialCreationData, me *sessions.Session) (Info, error) {
	p, err := s.VerifyRegistration(parsed, passkeyChallenge(a.Secret))
	if err != nil {
		return Info{}, err
	}
	id := passkeyIdentity(parsed.RawID)
	id.Single, id.Name, id.Passkey = true, name, &p
	id.Events = []store.ExtraEvent{s.DB.Audit(event.AuthFactorAdded, me.User.UUID,
		event.AuthDetails{Method: record.MethodPasskey, Factor: id.UUID(), Session: me.ID})}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticeFactorAdded}); err != nil {
		return Info{}, err
	}
	if err := s.Links.Link(ctx, id, me); err != nil {
		return Info{}, err
	}
	ident, err := s.DB.Idents.Read(record.AsService(ctx, me.User.UUID), id.UUID())
	if err != nil {
		return Info{}, err
	}
	return passkeyInfo(ident), nil
}

// errCredential is for a malformed answer of an authenticator.
func errCredential(err error) error {
	return errs.Wrap(err, errs.Invalid,
		"credential is not the reply of an authenticator in the form of PublicKeyCredential.toJSON")
}

// VerifyRegistration returns the credential of an answer to a challenge.
func (s *Method) VerifyRegistration(parsed *protocol.ParsedCredentialCreationData,
	challenge string) (record.Credential, error) {
	// Other formats of attestation are not requested, so they are not parsed: they are for deployments that choose
	// authenticators.
	switch format := protocol.AttestationFormat(parsed.Response.AttestationObject.Format); format {
	case protocol.AttestationFormatNone, protocol.AttestationFormatPacked:
	default:
		return record.Credential{}, errs.New(errs.Denied,
			"the passkey has an attestation, which was not requested: register it without one")
	}
	_, err := parsed.Verify(challenge, s.Config.RPID, s.Config.Origins, nil, nil,
		protocol.TopOriginExplicitVerificationMode,
		false, true, true, nil, passkeyAlgorithms(), protocol.AttestationPolicy{}, protocol.SignaturePolicy{})
	if err != nil {
		return record.Credential{}, errs.Wrap(err,
			errs.Denied, "the passkey was not registered: its answer does not match the challenge or the origin of "+
				"this service, or the authenticator has not verified its user")
	}
	data := parsed.Response.AttestationObject.AuthData
	if err := checkBackup(data.Flags); err != nil {
		return record.Credential{}, err
	}
	return record.Credential{
		PublicKey: data.AttData.CredentialPublicKey, SignCount: data.Counter, AAGUID: data.AttData.AAGUID,
		BackupEligible: data.Flags.HasBackupEligible(), BackedUp: data.Flags.HasBackupState(),
		Transports: transportsOf(parsed.Response.Transports),
	}, nil
}

// checkBackup returns Denied for flags that contradict each other.
func checkBackup(flags protocol.AuthenticatorFlags) error {
	if flags.HasBackupState() && !flags.HasBackupEligible() {
		return errs.New(errs.Denied,
			"the authenticator reports that the passkey is backed up, and that it can't be backed up")
	}
	return nil
}

// Limits of a client's description of how an authenticator is reached.
const (
	maxTransports = 8
	maxTransport  = 32
)

// transportsOf returns the transports that are words: they are hints, which belfry sends back to the same user.
func transportsOf(all []protocol.AuthenticatorTransport) (transports []string) {
	for _, t := range all {
		if len(t) > 0 && len(t) <= maxTransport && strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz-") == "" &&
			len(transports) < maxTransports {
			transports = append(transports, string(t))
		}
	}
	return transports
}
