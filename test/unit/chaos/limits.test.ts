import { expect, test } from 'vitest'
import { silenceOf } from '../../../apps/chaos/limits.js'

test.each([
  ['redis://localhost', 1000],
  ['zookeeper://localhost', 10_000],
  ['zookeeper://localhost/app?sessionTimeout=2s', 2000],
  ['zookeeper://localhost/app?acl=open&sessionTimeout=2m', 120_000],
  ['zookeeper://localhost/app?sessionTimeout=1500', 1500],
  ['zookeeper://localhost/app?sessionTimeout=1.5s', 1500],
])('what %s gave outlives a silence of %d ms with a lease of a second', (url, silence) => {
  expect(silenceOf(url, 1000)).toBe(silence)
})

test('a lease that is longer than the session counts', () => {
  expect(silenceOf('zookeeper://localhost?sessionTimeout=1s', 3000)).toBe(3000)
})
