package weak

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // the hash by which the service finds passwords; it protects nothing
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Breaches finds passwords that are in the data of breaches by the range API of Have I Been Pwned, or of a server with
// the same API. That server only learns the first 20 bits of a SHA-1, which some thousand known passwords share.
type Breaches struct {
	URL      string        // without the slash before the range
	Timeout  time.Duration // of a lookup, with all of its reply
	MinCount int           // minimum number of occurrences for a refusal

	Transport http.RoundTripper // nil: http.DefaultTransport
}

const (
	rangeSize = 5 // digits of a hash that the server learns

	// maxRange is the maximum size of a reply, in bytes. Replies of Have I Been Pwned have about 40 KB.
	maxRange = 1 << 20
)

// client follows no redirects, so only the configured URL is requested.
func (b *Breaches) client() *http.Client {
	return &http.Client{Transport: b.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// count returns how often a password occurs. Its errors have no part of the hash.
func (b *Breaches) count(ctx context.Context, password string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	sum := sha1.Sum([]byte(password)) //nolint:gosec // see above
	hash := strings.ToUpper(hex.EncodeToString(sum[:]))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/"+hash[:rangeSize], http.NoBody)
	if err != nil {
		return 0, withoutURL(err)
	}
	req.Header.Set("Add-Padding", "true") // or the length of the reply would reveal the range
	req.Header.Set("User-Agent", "belfry")
	resp, err := b.client().Do(req)
	if err != nil {
		return 0, withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the reply has the status %d", resp.StatusCode)
	}
	return countIn(resp.Body, hash[rangeSize:])
}

// countIn reads lines with the rest of a hash, a colon and a number of occurrences. Padding has 0 occurrences.
func countIn(body io.Reader, rest string) (int, error) {
	limited := &io.LimitedReader{R: body, N: maxRange}
	for lines := bufio.NewScanner(limited); ; {
		if !lines.Scan() {
			if lines.Err() == nil && limited.N == 0 {
				return 0, fmt.Errorf("the reply has more than %d bytes", maxRange)
			}
			return 0, lines.Err()
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		found, digits, _ := strings.Cut(line, ":")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || len(found) != len(rest) {
			return 0, errors.New("the reply is not that of the range API")
		}
		if strings.EqualFold(found, rest) {
			return n, nil
		}
	}
}

// withoutURL removes the URL from an error of a request: it ends with a part of the hash.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return errors.New("the URL can't be used")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
