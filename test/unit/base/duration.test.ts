import { describe, expect, test } from 'vitest'
import { milliseconds, type Duration } from '../../../src/base/duration.js'
import { InvalidArgumentError, shown } from '../../../src/base/errors.js'

const any = { min: 0, max: Infinity }

describe('a duration becomes milliseconds', () => {
  test.each([
    [0, 0],
    [Infinity, Infinity],
    ['250ms', 250],
    ['5s', 5000],
    ['1.5s', 1500],
    ['0.25m', 15_000],
    ['1d', 86_400_000],
    ...(
      [
        ['5 s', 5000],
        ['+5s', 5000],
        ['.5s', 500],
        ['1e3ms', 1000],
        ['0x5s', 5000],
      ] as const
    ).map(([text, expected]): [Duration, number] => [text, expected]),
  ])('%s is %d ms', (value, expected) => {
    expect(milliseconds('wait', value, any)).toBe(expected)
  })

  test.each(
    [
      NaN,
      '',
      '5',
      '5ss',
      '5s ',
      '5s5s',
      '5s\n',
      'Infinity',
      undefined,
      null,
      5n,
      {},
      () => 5,
      Symbol('5s'),
    ].map(value => [shown(value), value] as const),
  )('%s is none', (_, value) => {
    expect(() => milliseconds('wait', value, any)).toThrow(InvalidArgumentError)
    expect(() => milliseconds('wait', value, any)).toThrow(/^wait must be .*5s.*, not /)
  })

  test('bounds are inclusive, and named in the error', () => {
    const bounds = { min: 20, max: 1000 }
    expect(milliseconds('lease', 20, bounds)).toBe(20)
    expect(milliseconds('lease', '1s', bounds)).toBe(1000)
    expect(() => milliseconds('lease', 19.9, bounds)).toThrow('lease must be from 20 ms to 1000 ms, not 19.9')
    expect(() => milliseconds('lease', '2s', bounds)).toThrow('lease must be from 20 ms to 1000 ms, not "2s"')
    expect(() => milliseconds('wait', -1, any)).toThrow('wait must be at least 0 ms, not -1')
  })
})
