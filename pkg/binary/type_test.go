package binary

import "testing"

// What programs call a type is the registered one wherever it is read, and a registered name is no other's alias.
func TestTypesHaveTheirRegisteredNames(t *testing.T) {
	for given, want := range map[string]string{
		"image/jpg": "image/jpeg", "IMAGE/JPG": "image/jpeg", "image/pjpeg; q=1": "image/jpeg; q=1",
		"image/jpeg": "image/jpeg",
		"audio/mp3":  "audio/mpeg", "application/x-pdf": "application/pdf",
		"text/x-yaml; charset=utf-8": "application/yaml; charset=utf-8",
		"application/javascript":     "text/javascript", "application/vnd.x+json": "application/vnd.x+json",
		"nothing": unknownType,
	} {
		if got := cleanType(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}
