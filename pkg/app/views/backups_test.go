package views

import "testing"

// Commands that a page shows can be copied into a shell.
func TestPathsAreWordsOfAShell(t *testing.T) {
	for text, want := range map[string]string{
		"/usr/bin/belfry": "/usr/bin/belfry", "/srv/my data": "'/srv/my data'", "": "''", "-rf": "'-rf'",
		"/srv/it's; rm -rf ~": `'/srv/it'\''s; rm -rf ~'`, "/srv/$HOME`id`": "'/srv/$HOME`id`'", "/ä": "'/ä'",
	} {
		if got := word(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
