import { expect, test } from 'vitest'
import { faults } from './faults.js'
import { markedFaults } from './faulty-copy.js'
import { mistakes } from './records/mistakes.js'

test('each comment that marks a fault belongs to one, and each fault is marked once', () => {
  const names = [...faults, ...mistakes].map(({ name }) => name)
  expect(markedFaults().sort()).toEqual(names.sort())
})
