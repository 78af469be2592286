package account

import (
	"belfry/pkg/account/method/about"
	"belfry/pkg/texts"
)

// Languages returns the embedded languages, and those of the files of a folder; "" means no folder. The texts of
// methods have the ids method.NAME.TEXT, for instance method.totp.answer.
func Languages(folder string, more ...NewMethod) (*texts.Catalog, error) {
	all := map[string]string{}
	for _, m := range About(true, true, more...) {
		for name, text := range m.TextsByID() {
			if *text != "" {
				all[name] = *text
			}
		}
	}
	return texts.Load(folder, all)
}

// Language returns the tag of the language that a client asks for by its header Accept-Language; "" for a program,
// which asks for none.
func (s *Service) Language(accept string) string {
	if accept == "" || s.Languages == nil {
		return ""
	}
	return s.Languages.Match(accept).Tag()
}

// In returns the description of a method in a language.
func In(l *texts.Language, m about.Method) about.Method {
	for id, text := range m.TextsByID() {
		if *text != "" && l.Has(id) {
			*text = l.Raw(id)
		}
	}
	return m
}
