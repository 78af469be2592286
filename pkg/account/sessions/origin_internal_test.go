package sessions

import (
	"strings"
	"testing"
)

func TestDevicesAreBrowsersAndSystems(t *testing.T) {
	const webkit = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 " +
			"Firefox/140.0": "Firefox on Linux",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + webkit +
			" Version/18.1 Safari/605.1.15": "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) " + webkit +
			" Version/18.1 Mobile/15E148 Safari/604.1": "Safari on iOS",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 " +
			"Safari/537.36 Edg/130.0.0.0": "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile " +
			"Safari/537.36": "Chrome on Android",
		"": "", "curl/8.5.0": "", "tester/1.0": "",
	} {
		if got := deviceOf(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}

// A client chooses its user agent: no text of it is in the device.
func TestADeviceHasNoTextOfTheClient(t *testing.T) {
	for _, agent := range []string{
		"<script>alert(1)</script>", "Mozilla/5.0 (<b>evil</b>) evil/1.0", "Chrome/<i>evil</i> (Linux)",
		"Firefox/evil\x00\xff (Windows evil)",
		strings.Repeat("(evil; ", 4000), strings.Repeat("Chrome/evil ", 2000), strings.Repeat("\xf0\x9f", 8000),
	} {
		if got := deviceOf(agent); strings.Contains(got, "evil") || strings.ContainsAny(got, "<>\x00") ||
			len(got) > 40 {
			t.Errorf("%.40q is %q", agent, got)
		}
	}
}
