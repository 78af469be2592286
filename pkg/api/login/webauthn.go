package login

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// addWebauthn adds the schemas of Web Authentication, level 3, as JSON: belfry's options, and the browsers' answers.
func addWebauthn(set *op.Set) {
	set.Component("PasskeyOptions",
		passkeyOptions("For navigator.credentials.create, by PublicKeyCredential.parseCreationOptionsFromJSON.",
			creationOptions()))
	set.Component("PasskeyLoginOptions",
		passkeyOptions("For navigator.credentials.get, by PublicKeyCredential.parseRequestOptionsFromJSON.",
			requestOptions()))
	set.Component("PasskeyDescriptor", op.Object("A passkey.", 2, "type", op.Only("public-key"), "id",
		binary("The id of the passkey."), "transports",
		op.Texts("The transports by which the authenticator can be reached.")))
	set.Component("PasskeyRegistration",
		credential("The authenticator's answer to a registration, as from PublicKeyCredential.toJSON().",
			op.Object("", 2,
				"clientDataJSON", binary("The signed data."), "attestationObject", binary("The new public key."),
				"transports", op.Texts("The transports by which the authenticator can be reached."),
				"authenticatorData", binary(""), "publicKey", binary(""), "publicKeyAlgorithm",
				ordered.Of("type", "integer"))))
	set.Component("PasskeyAssertion",
		credential("The authenticator's answer to a login, as from PublicKeyCredential.toJSON().", op.Object("", 3,
			"clientDataJSON", binary("The signed data."), "authenticatorData", binary("Data of the authenticator."),
			"signature", binary(""), "userHandle", binary("The user handle."))))
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
		"mediation", op.Text("The way in which the browser asks the user."),
		"secret", op.Text("With `Prefer: return=representation`: the secret to send with the answer. Other clients "+
			"have it in a cookie."))
}

// creationOptions is PublicKeyCredentialCreationOptionsJSON.
func creationOptions() *ordered.Object {
	return op.Object("As in Web Authentication, section 5.4.", 4,
		"rp", op.Object("belfry.", 1, "name", op.Text(""), "id", op.Text("The domain.")),
		"user", op.Object("The user of the new passkey.", 3, "id", binary("A handle."), "name", op.Text(""),
			"displayName", op.Text("")),
		"challenge", binary("The bytes to sign."),
		"pubKeyCredParams", ordered.Of("type", "array", "description", "Algorithms, the preferred ones first.",
			"items", op.Object("", 2, "type", op.Only("public-key"), "alg",
				ordered.Of("type", "integer", "description", "The number of the COSE algorithm."))),
		"timeout", milliseconds(),
		"excludeCredentials", descriptors("The user's passkeys."),
		"authenticatorSelection", op.Object("The accepted authenticators.", 0,
			"authenticatorAttachment", op.Text(""), "residentKey", op.Text(""),
			"requireResidentKey", ordered.Of("type", "boolean"), "userVerification", op.Text("")),
		"hints", op.Texts("The kinds of authenticators to suggest."), "attestation", op.Text(""), "attestationFormats",
		op.Texts("Formats of the attestation."), "extensions", op.Free("Extensions of Web Authentication."))
}

// requestOptions is PublicKeyCredentialRequestOptionsJSON.
func requestOptions() *ordered.Object {
	return op.Object("As in Web Authentication, section 5.5.", 1,
		"challenge", binary("The bytes to sign."), "timeout", milliseconds(), "rpId", op.Text("The domain."),
		"allowCredentials", descriptors("The passkeys that may answer; absent: any."),
		"userVerification", op.Text(""), "hints", op.Texts("The kinds of authenticators to suggest."), "extensions",
		op.Free("Extensions of Web Authentication."))
}

func milliseconds() *ordered.Object {
	return ordered.Of("type", "integer", "description", "The time limit for the answer, in milliseconds.")
}

func descriptors(description string) *ordered.Object {
	return ordered.Of("type", "array", "description", description, "items", apimodel.Ref("PasskeyDescriptor"))
}

// credential is a PublicKeyCredential with a response.
func credential(description string, response *ordered.Object) *ordered.Object {
	return op.Object(description, 4, "id", op.Text("The id of the passkey, in base64url."), "rawId",
		binary("The same id."), "type", op.Only("public-key"), "response", response,
		"clientExtensionResults", op.Free("Results of extensions."), "authenticatorAttachment",
		op.Text("platform, or cross-platform."))
}
