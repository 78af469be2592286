package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// webauthn adds the schemas of Web Authentication, level 3, as JSON: what belfry sends, and what browsers reply.
func webauthn(all *ordered.Object) {
	all.Set("PasskeyOptions", passkeyOptions("For navigator.credentials.create, by PublicKeyCredential.parseCreationOptionsFromJSON.", creationOptions()))
	all.Set("PasskeyLoginOptions", passkeyOptions("For navigator.credentials.get, by PublicKeyCredential.parseRequestOptionsFromJSON.", requestOptions()))
	all.Set("PasskeyDescriptor", objectOf("A passkey.", 2, "type", only("public-key"), "id", binary("Which one."), "transports", texts("How to reach it.")))
	all.Set("PasskeyRegistration", credential("What the authenticator replies to a registration, as PublicKeyCredential.toJSON() has it.", objectOf("", 2,
		"clientDataJSON", binary("What was signed."), "attestationObject", binary("The new public key."), "transports", texts("How to reach the authenticator."),
		"authenticatorData", binary(""), "publicKey", binary(""), "publicKeyAlgorithm", ordered.Of("type", "integer"))))
	all.Set("PasskeyAssertion", credential("What the authenticator replies to a login, as PublicKeyCredential.toJSON() has it.", objectOf("", 3,
		"clientDataJSON", binary("What was signed."), "authenticatorData", binary("Of the authenticator."), "signature", binary(""), "userHandle", binary("Whose passkey it is."))))
}

// objectOf is an object of which the first properties, so many as needed, are required.
func objectOf(description string, needed int, properties ...any) *ordered.Object {
	o := ordered.Of("type", "object")
	if description != "" {
		o.Set("description", description)
	}
	all := ordered.Of(properties...)
	var required []string
	for _, m := range all.Members()[:needed] {
		required = append(required, m.Name)
	}
	if required != nil {
		o.Set("required", required)
	}
	o.Set("properties", all)
	return o
}

// binary is a value of bytes.
func binary(description string) *ordered.Object {
	s := ordered.Of("type", "string", "pattern", "^[A-Za-z0-9_-]*={0,2}$")
	if description != "" {
		s.Set("description", description+" In base64url.")
	}
	return s
}

func texts(description string) *ordered.Object {
	return ordered.Of("type", "array", "description", description, "items", ordered.Of("type", "string"))
}

func only(value string) *ordered.Object { return ordered.Of("type", "string", "const", value) }

// free is an object of any members.
func free(description string) *ordered.Object {
	return ordered.Of("type", "object", "description", description, "additionalProperties", true)
}

func passkeyOptions(description string, publicKey *ordered.Object) *ordered.Object {
	return objectOf(description, 1, "publicKey", publicKey,
		"mediation", ordered.Of("type", "string", "description", "How the browser asks the user."),
		"secret", ordered.Of("type", "string", "description", "With `Prefer: return=representation`: to be sent with the answer. Others have it in a cookie."))
}

// creationOptions is PublicKeyCredentialCreationOptionsJSON.
func creationOptions() *ordered.Object {
	return objectOf("As in Web Authentication, section 5.4.", 4,
		"rp", objectOf("belfry.", 1, "name", ordered.Of("type", "string"), "id", ordered.Of("type", "string", "description", "The domain.")),
		"user", objectOf("Whose passkey it will be.", 3, "id", binary("A handle."), "name", ordered.Of("type", "string"), "displayName", ordered.Of("type", "string")),
		"challenge", binary("To be signed."),
		"pubKeyCredParams", ordered.Of("type", "array", "description", "Algorithms, the best first.",
			"items", objectOf("", 2, "type", only("public-key"), "alg", ordered.Of("type", "integer", "description", "Of COSE."))),
		"timeout", milliseconds(),
		"excludeCredentials", descriptors("Those that the user has."),
		"authenticatorSelection", objectOf("What authenticators will do.", 0,
			"authenticatorAttachment", ordered.Of("type", "string"), "residentKey", ordered.Of("type", "string"),
			"requireResidentKey", ordered.Of("type", "boolean"), "userVerification", ordered.Of("type", "string")),
		"hints", texts("What authenticators to suggest."), "attestation", ordered.Of("type", "string"), "attestationFormats", texts("Of the attestation."),
		"extensions", free("Of Web Authentication."))
}

// requestOptions is PublicKeyCredentialRequestOptionsJSON.
func requestOptions() *ordered.Object {
	return objectOf("As in Web Authentication, section 5.5.", 1,
		"challenge", binary("To be signed."), "timeout", milliseconds(), "rpId", ordered.Of("type", "string", "description", "The domain."),
		"allowCredentials", descriptors("Those that may answer; absent: any."),
		"userVerification", ordered.Of("type", "string"), "hints", texts("What authenticators to suggest."), "extensions", free("Of Web Authentication."))
}

func milliseconds() *ordered.Object {
	return ordered.Of("type", "integer", "description", "Milliseconds to answer within.")
}

func descriptors(description string) *ordered.Object {
	return ordered.Of("type", "array", "description", description, "items", model.Ref("PasskeyDescriptor"))
}

// credential is a PublicKeyCredential with a response.
func credential(description string, response *ordered.Object) *ordered.Object {
	return objectOf(description, 4, "id", ordered.Of("type", "string", "description", "Which passkey it is, in base64url."), "rawId", binary("The same."), "type", only("public-key"), "response", response,
		"clientExtensionResults", free("Of extensions."), "authenticatorAttachment", ordered.Of("type", "string", "description", "platform, or cross-platform."))
}

// credentialText is the answer of an authenticator in an HTML form.
func credentialText() []any {
	return []any{"credential", ordered.Of("type", "string", "description", "What the authenticator replies, as the JSON text of `PublicKeyCredential.toJSON()`.")}
}
