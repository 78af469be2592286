package schema

import (
	"errors"
	"strings"
)

// class translates a character class. Go's classes differ: the first ] is a
// letter there, [: begins a named class, and a class cannot be empty.
func (t *patternTranslator) class() error {
	t.at++
	negated := t.rest(1) == "^"
	if negated {
		t.at++
	}
	var members strings.Builder
	for {
		if t.at == len(t.in) {
			return errors.New("a class is not closed by ]")
		}
		if t.in[t.at] == ']' {
			break
		}
		if err := t.classRange(&members); err != nil {
			return err
		}
	}
	t.at++
	t.repeatable = true
	switch {
	case members.Len() > 0 && negated:
		t.out.WriteString("[^" + members.String() + "]")
	case members.Len() > 0:
		t.out.WriteString("[" + members.String() + "]")
	case negated:
		t.out.WriteString(`[\x00-\x{10ffff}]`)
	default:
		t.out.WriteString(`[^\x00-\x{10ffff}]`)
	}
	return nil
}

// classRange translates one member of a class, or a range of two.
func (t *patternTranslator) classRange(members *strings.Builder) error {
	first, err := t.classAtom()
	if err != nil {
		return err
	}
	members.WriteString(first.text)
	if t.at+1 >= len(t.in) || t.in[t.at] != '-' || t.in[t.at+1] == ']' {
		return nil
	}
	t.at++
	last, err := t.classAtom()
	if err != nil {
		return err
	}
	if first.set || last.set {
		return errors.New("a range cannot begin or end with a set of characters")
	}
	members.WriteString("-" + last.text)
	return nil
}

func (t *patternTranslator) classAtom() (atom, error) {
	if t.in[t.at] != '\\' {
		t.at++
		return runeAtom(t.in[t.at-1]), nil
	}
	if t.at+1 == len(t.in) {
		return atom{}, errors.New("a backslash ends it")
	}
	switch t.in[t.at+1] {
	case 'b':
		t.at += 2
		return runeAtom('\b'), nil
	case 's':
		t.at += 2
		return atom{text: ecmaSpace, set: true}, nil
	case 'S':
		t.at += 2
		return atom{text: ecmaNotSpace, set: true}, nil
	}
	return t.atom()
}
