package plan_test

import (
	"os"
	"path/filepath"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// A language without texts of mails takes no memory for them, and one has those of its parent.
func TestLanguagesHaveOnlyMailsThatTheyTranslate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml": "authentication: {providers: {email: {}}}\npages: {languages: languages}",

		"languages/fr.yaml":    "login: {title: Connexion}",
		"languages/pt.yaml":    "mails: {validation: {subject: Confirme}}",
		"languages/pt-BR.yaml": "login: {title: Entrar}",
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(folder, "config.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	mail := p.Auth.Email.Validation
	for language, like := range map[string]string{"fr": "en", "en": "en", "xx": "en"} {
		if mail.In(language) != mail.In(like) {
			t.Errorf("%s has mails of its own", language)
		}
	}
	for _, language := range []string{"de", "pt", "pt-BR"} {
		if mail.In(language) == mail.In("en") {
			t.Errorf("%s has the English mails", language)
		}
	}
}
