package login

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// addWebauthn adds the schemas of Web Authentication, level 3, as JSON: what belfry sends, and what browsers reply.
func addWebauthn(set *op.Set) {
	set.Component("PasskeyOptions", passkeyOptions("For navigator.credentials.create, by PublicKeyCredential.parseCreationOptionsFromJSON.", creationOptions()))
	set.Component("PasskeyLoginOptions", passkeyOptions("For navigator.credentials.get, by PublicKeyCredential.parseRequestOptionsFromJSON.", requestOptions()))
	set.Component("PasskeyDescriptor", op.Object("A passkey.", 2, "type", op.Only("public-key"), "id", binary("Which one."), "transports", op.Texts("How to reach it.")))
	set.Component("PasskeyRegistration", credential("What the authenticator replies to a registration, as PublicKeyCredential.toJSON() has it.", op.Object("", 2,
		"clientDataJSON", binary("What was signed."), "attestationObject", binary("The new public key."), "transports", op.Texts("How to reach the authenticator."),
		"authenticatorData", binary(""), "publicKey", binary(""), "publicKeyAlgorithm", ordered.Of("type", "integer"))))
	set.Component("PasskeyAssertion", credential("What the authenticator replies to a login, as PublicKeyCredential.toJSON() has it.", op.Object("", 3,
		"clientDataJSON", binary("What was signed."), "authenticatorData", binary("Of the authenticator."), "signature", binary(""), "userHandle", binary("Whose passkey it is."))))
}

// binary is a value of bytes.
func binary(description string) *ordered.Object {
	s := ordered.Of("type", "string", "pattern", "^[A-Za-z0-9_-]*={0,2}$")
	if description != "" {
		s.Set("description", description+" In base64url.")
	}
	return s
}

func passkeyOptions(description string, publicKey *ordered.Object) *ordered.Object {
	return op.Object(description, 1, "publicKey", publicKey,
		"mediation", op.Text("How the browser asks the user."),
		"secret", op.Text("With `Prefer: return=representation`: to be sent with the answer. Others have it in a cookie."))
}

// creationOptions is PublicKeyCredentialCreationOptionsJSON.
func creationOptions() *ordered.Object {
	return op.Object("As in Web Authentication, section 5.4.", 4,
		"rp", op.Object("belfry.", 1, "name", op.Text(""), "id", op.Text("The domain.")),
		"user", op.Object("Whose passkey it will be.", 3, "id", binary("A handle."), "name", op.Text(""), "displayName", op.Text("")),
		"challenge", binary("To be signed."),
		"pubKeyCredParams", ordered.Of("type", "array", "description", "Algorithms, the best first.",
			"items", op.Object("", 2, "type", op.Only("public-key"), "alg", ordered.Of("type", "integer", "description", "Of COSE."))),
		"timeout", milliseconds(),
		"excludeCredentials", descriptors("Those that the user has."),
		"authenticatorSelection", op.Object("What authenticators will do.", 0,
			"authenticatorAttachment", op.Text(""), "residentKey", op.Text(""),
			"requireResidentKey", ordered.Of("type", "boolean"), "userVerification", op.Text("")),
		"hints", op.Texts("What authenticators to suggest."), "attestation", op.Text(""), "attestationFormats", op.Texts("Of the attestation."),
		"extensions", op.Free("Of Web Authentication."))
}

// requestOptions is PublicKeyCredentialRequestOptionsJSON.
func requestOptions() *ordered.Object {
	return op.Object("As in Web Authentication, section 5.5.", 1,
		"challenge", binary("To be signed."), "timeout", milliseconds(), "rpId", op.Text("The domain."),
		"allowCredentials", descriptors("Those that may answer; absent: any."),
		"userVerification", op.Text(""), "hints", op.Texts("What authenticators to suggest."), "extensions", op.Free("Of Web Authentication."))
}

func milliseconds() *ordered.Object {
	return ordered.Of("type", "integer", "description", "Milliseconds to answer within.")
}

func descriptors(description string) *ordered.Object {
	return ordered.Of("type", "array", "description", description, "items", apimodel.Ref("PasskeyDescriptor"))
}

// credential is a PublicKeyCredential with a response.
func credential(description string, response *ordered.Object) *ordered.Object {
	return op.Object(description, 4, "id", op.Text("Which passkey it is, in base64url."), "rawId", binary("The same."), "type", op.Only("public-key"), "response", response,
		"clientExtensionResults", op.Free("Of extensions."), "authenticatorAttachment", op.Text("platform, or cross-platform."))
}
