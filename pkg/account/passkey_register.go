package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// BeginPasskey makes the challenge for adding a passkey to the account of the user who is logged in. Errors: those of requireFresh; Conflict when there are too many.
func (s *Service) BeginPasskey(ctx context.Context, me *Session) (PasskeyChallenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return PasskeyChallenge{}, err
	}
	if err := s.requireFreshToEnroll(ctx, me); err != nil {
		return PasskeyChallenge{}, err
	}
	if err := s.requireSecond(ctx, me); err != nil { // a passkey is two factors at once, so no limited session may add one
		return PasskeyChallenge{}, err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	own, err := s.passkeyDescriptors(ctx, me.User.UUID)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	if len(own) >= maxPasskeys {
		return PasskeyChallenge{}, errs.New(errs.Conflict, "you have %d passkeys, and at most as many are allowed: remove one first", len(own))
	}
	address, err := s.Address(ctx, me.User.UUID)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	address = cmp.Or(address, me.User.UUID)
	name, _ := me.Visible.Text("name")
	handle, err := secret.B64.DecodeString(userHandle(me.User.UUID))
	if err != nil {
		return PasskeyChallenge{}, err
	}
	made, challenge, err := s.saveChallenge(ctx, passkeyRegistration(me))
	if err != nil {
		return PasskeyChallenge{}, err
	}
	text, err := json.Marshal(protocol.CredentialCreation{Response: protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{CredentialEntity: protocol.CredentialEntity{Name: s.passkeys.RPName}, ID: s.passkeys.RPID},
		User: protocol.UserEntity{
			CredentialEntity: protocol.CredentialEntity{Name: address}, DisplayName: cmp.Or(strings.TrimSpace(name), address), ID: protocol.URLEncodedBase64(handle),
		},
		Challenge: challenge, Parameters: passkeyAlgorithms(), Timeout: int(PasskeyTTL.Milliseconds()), CredentialExcludeList: own,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(), ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
		Attestation: protocol.PreferNoAttestation,
	}})
	return PasskeyChallenge{Options: text, Secret: made, Name: challengeName(passkeyChallenge(made))}, err
}

// AddPasskey adds a passkey to the account of the user who is logged in, by the answer to BeginPasskey.
//
// Errors: Invalid for an answer that can't be read, or a name that a passkey can't have; Denied for one that does not
// fit to the challenge, the origin or what was asked for; Exists when the credential is registered already;
// Unauthenticated when the session has ended, or has to prove a second factor.
func (s *Service) AddPasskey(ctx context.Context, name string, a PasskeyAnswer, me *Session) (PasskeyInfo, error) {
	if err := errors.Join(s.requirePasskeys(), RequireLogin(me)); err != nil {
		return PasskeyInfo{}, err
	}
	// The account may have got a second factor since BeginPasskey.
	if err := s.requireSecond(ctx, me); err != nil {
		return PasskeyInfo{}, err
	}
	name = cmp.Or(name, defaultPasskeyName)
	if err := checkPasskeyName(name); err != nil {
		return PasskeyInfo{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(a.Credential)
	if err != nil {
		return PasskeyInfo{}, errCredential(err)
	}
	if err := s.consumeChallenge(ctx, a, passkeyRegistration(me), ActPasskey); err != nil {
		return PasskeyInfo{}, err
	}
	added, err := s.addVerified(ctx, name, a, parsed, me)
	s.settle(ctx, passkeyUUID(a.Secret), err == nil)
	return added, err
}

// addVerified adds a passkey by an answer whose challenge was used up for it.
func (s *Service) addVerified(ctx context.Context, name string, a PasskeyAnswer, parsed *protocol.ParsedCredentialCreationData, me *Session) (PasskeyInfo, error) {
	p, err := s.verifyRegistration(parsed, passkeyChallenge(a.Secret))
	if err != nil {
		return PasskeyInfo{}, err
	}
	id := passkeyIdentity(parsed.RawID)
	id.single, id.name, id.passkey = true, name, &p
	id.events = []store.ExtraEvent{s.db.Audit(event.AuthFactorAdded, me.User.UUID, event.AuthDetails{Method: record.MethodPasskey, Factor: id.UUID(), Session: me.ID})}
	if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticeFactorAdded}); err != nil {
		return PasskeyInfo{}, err
	}
	if err := s.linkIdent(ctx, id, me); err != nil {
		return PasskeyInfo{}, err
	}
	ident, err := s.db.Idents.Read(record.AsService(ctx, me.User.UUID), id.UUID())
	if err != nil {
		return PasskeyInfo{}, err
	}
	return passkeyInfo(ident), nil
}

// errCredential is for what is no answer of an authenticator.
func errCredential(err error) error {
	return errs.Wrap(err, errs.Invalid, "credential is not what an authenticator replies, as PublicKeyCredential.toJSON has it")
}

// verifyRegistration returns the credential of an answer to a challenge.
func (s *Service) verifyRegistration(parsed *protocol.ParsedCredentialCreationData, challenge string) (record.Credential, error) {
	// What was not asked for is not parsed: other formats of attestation are for deployments that choose authenticators.
	switch format := protocol.AttestationFormat(parsed.Response.AttestationObject.Format); format {
	case protocol.AttestationFormatNone, protocol.AttestationFormatPacked:
	default:
		return record.Credential{}, errs.New(errs.Denied, "the passkey comes with an attestation that was not asked for: register it without one")
	}
	_, err := parsed.Verify(challenge, s.passkeys.RPID, s.passkeys.Origins, nil, nil, protocol.TopOriginExplicitVerificationMode,
		false, true, true, nil, passkeyAlgorithms(), protocol.AttestationPolicy{}, protocol.SignaturePolicy{})
	if err != nil {
		return record.Credential{}, errs.Wrap(err, errs.Denied, "the passkey was not registered: its answer does not fit to the challenge, to the origin of this service, or to what was asked for, which is that the authenticator verifies its user")
	}
	data := parsed.Response.AttestationObject.AuthData
	if err := checkBackup(data.Flags); err != nil {
		return record.Credential{}, err
	}
	return record.Credential{
		PublicKey: data.AttData.CredentialPublicKey, SignCount: data.Counter, AAGUID: data.AttData.AAGUID,
		BackupEligible: data.Flags.HasBackupEligible(), BackedUp: data.Flags.HasBackupState(), Transports: transportsOf(parsed.Response.Transports),
	}, nil
}

// checkBackup reports Denied for flags that contradict each other.
func checkBackup(flags protocol.AuthenticatorFlags) error {
	if flags.HasBackupState() && !flags.HasBackupEligible() {
		return errs.New(errs.Denied, "the authenticator says that the passkey is backed up, and that it can't be")
	}
	return nil
}

// Bounds of what a client says about how an authenticator is reached.
const (
	maxTransports = 8
	maxTransport  = 32
)

// transportsOf returns the transports that are words: they are hints, which belfry sends back to the same user.
func transportsOf(all []protocol.AuthenticatorTransport) (transports []string) {
	for _, t := range all {
		if len(t) > 0 && len(t) <= maxTransport && strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz-") == "" && len(transports) < maxTransports {
			transports = append(transports, string(t))
		}
	}
	return transports
}
