import { describe, expect, test } from 'vitest'
import { pauseAskedFor } from '../../../../src/limits/http/pause.js'

/** Wall-clock time of these tests, in milliseconds since 1970. */
const NOW = Date.UTC(2026, 0, 1, 12)

function pause(status: number, headers: Record<string, string>): number {
  return pauseAskedFor(status, new Headers(headers), NOW)
}

describe('Retry-After', () => {
  test.each([
    [{ 'Retry-After': '3' }, 3000],
    [{ 'Retry-After': 'Thu, 01 Jan 2026 12:00:05 GMT' }, 5000],
    [{ 'Retry-After': 'Thursday, 01-Jan-26 12:00:05 GMT' }, 5000],
    // An hour ahead, like the clock that wrote it.
    [{ 'Retry-After': 'Thu, 01 Jan 2026 13:00:05 GMT', Date: 'Thu, 01 Jan 2026 13:00:00 GMT' }, 5000],
    [{ 'Retry-After': '99999999' }, 99_999_999_000],
    [{ 'Retry-After': 'soon' }, 0],
    [{ 'Retry-After': '-5' }, 0],
    [{}, 0],
  ])('%j of a refusal', (headers, expected) => {
    expect(pause(429, headers)).toBe(expected)
    expect(pause(503, headers)).toBe(expected)
    // In other responses, the header has another meaning.
    expect(pause(201, headers)).toBe(0)
  })

  test('takes precedence over the quota next to it', () => {
    expect(pause(429, { 'Retry-After': '1', RateLimit: '"day";r=0;t=4000' })).toBe(1000)
  })
})

describe('a quota', () => {
  test.each([
    [{ RateLimit: '"default";r=0;t=7' }, 7000],
    [{ RateLimit: '"second";r=0;t=1, "day";r=0;t=60, "month";r=9;t=500' }, 60_000],
    [{ RateLimit: 'default;r=0;t=2' }, 2000],
    [{ RateLimit: '"default";r=0' }, 0],
    [{ RateLimit: 'limit=10, remaining=0, reset=4' }, 4000],
    [{ RateLimit: '"default";r=0;t=-3' }, 0],
    [{ RateLimit: '((;;' }, 0],
    [{ 'RateLimit-Limit': '10, 10;w=60', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '9' }, 9000],
    [{ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '2.5' }, 2500],
    [{ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW / 1000 + 8) }, 8000],
    [{ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW + 800) }, 800],
    [{ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW / 1000 - 8) }, 0],
    [{ 'X-Rate-Limit-Remaining': '0', 'X-Rate-Limit-Reset': '6' }, 6000],
    [{ 'X-RateLimit-Remaining': '0' }, 0],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6m0s' }, 360_000],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1.25s' }, 1250],
    [
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '20ms',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '1h2m3s',
      },
      3_723_000,
    ],
    [{ 'x-ratelimit-remaining-tokens': '1', 'x-ratelimit-reset-tokens': '6m0s' }, 0],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': 'soon' }, 0],
    [{ 'x-ratelimit-remaining-tokens': '0' }, 0],
    [{ 'anthropic-ratelimit-output-tokens-remaining': '0' }, 0],
    [
      {
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': new Date(NOW + 9000).toISOString(),
      },
      9000,
    ],
  ])('%j', (headers, expected) => {
    expect(pause(200, headers)).toBe(expected)
    expect(pause(429, headers)).toBe(expected)
  })
})
