package app

import (
	"encoding/json"
	"strings"
	"testing"

	"belfry/pkg/api/console"
)

// A secret that a comment repeats is shown neither by a change that replaces or removes it, nor by the undo.
func TestSecretsInCommentsStayHidden(t *testing.T) {
	e := newEditing(t, edited+"# The password is hunter2-in-the-file.\n")
	password := []string{"mailers", "post", "password"}
	shown := func(p *console.ModelProposal, err error) {
		t.Helper()
		text, _ := json.Marshal(p)
		if err != nil || len(p.Files) == 0 || !strings.Contains(string(text), "The password is [secret]") {
			t.Errorf("%s %v", text, err)
		}
		for _, secret := range []string{"hunter2", "another-secret"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the secret %s: %s", secret, text)
			}
		}
	}
	replaced := &console.ModelDraft{Base: e.base(), Changes: []console.ModelChange{{Path: password, Secret: true}},
		Secrets: map[string]string{strings.Join(password, "."): "another-secret"}}
	shown(e.editor().Propose(e.Context(), replaced))
	made := e.apply(replaced)
	shown(e.editor().ProposeUndo(e.Context(), made.Number))
	undo, err := e.editor().ProposeUndo(e.Context(), made.Number)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.editor().Undo(e.Context(), made.Number, undo.Base, e.by); err != nil {
		t.Fatal(err)
	}
	shown(e.editor().Propose(e.Context(), &console.ModelDraft{Base: e.base(),
		Changes: []console.ModelChange{{Path: password[:2]}}}))
}
