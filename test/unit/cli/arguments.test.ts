import { expect, test } from 'vitest'
import { countOf, duration, permitsOf, rateOf, versionOf } from '../../../src/cli/arguments.js'

test('durations, permits, rates, versions and counts are read, and anything else is refused', () => {
  expect(duration('5s')).toBe(5000)
  expect(permitsOf('1/4')).toEqual({ permits: 1, max: 4 })
  expect(rateOf('20/s')).toEqual({ limit: 20, per: 1000 })
  expect(rateOf('500/15m')).toEqual({ limit: 500, per: 900_000 })
  expect(rateOf('3/0.5s')).toEqual({ limit: 3, per: 500 })
  expect(versionOf('0')).toBe(0)
  expect(countOf('12')).toBe(12)
  const refused: [(text: string) => unknown, string[]][] = [
    [duration, ['', '5', '-1s', '5s ', '5y']],
    [permitsOf, ['', '1', '1/', '1/4/5', '-1/4']],
    [rateOf, ['', '20', '20/', 's/20', '20/5', '20/1w']],
    [versionOf, ['', '-1', '1.5', '9007199254740993']],
    [countOf, ['', '0', '1.5', '-1']],
  ]
  for (const [read, texts] of refused) for (const text of texts) expect(() => read(text), text).toThrow()
  expect(() => duration('5')).toThrow('It must be a time with a unit, such as 250ms, 5s, 2m, 1h or 1d.')
})
