import { expect, test } from 'vitest'
import { Slot } from '../../../apps/trains/supervisor/slot.js'
import { Turns } from '../../../apps/trains/supervisor/turns.js'

/** Returns a ready worker with a number of messages to do. */
function slotWith(number: number, messages: number): Slot {
  const slot = new Slot(number)
  slot.ready = true
  add(slot, messages)
  return slot
}

let sequence = 0

function add(slot: Slot, messages: number): void {
  for (let index = 0; index < messages; index++) {
    slot.add({ sequence: sequence++, message: { id: String(sequence), type: 'create', train: 'a' } })
  }
}

/** Sends a worker up to `most` messages. Returns their numbers. */
function send(turns: Turns, slot: Slot, most: number): readonly number[] {
  const batch = slot.take(most)
  turns.sent(slot, batch.length)
  return batch.map(({ sequence: number }) => number)
}

function settle(slot: Slot, sequences: readonly number[]): void {
  for (const number of sequences) slot.settle(number)
}

test('the maximum number of workers have a turn, and the longest-waiting one gets the next', () => {
  const slots = [1, 2, 3, 4].map(number => slotWith(number, 10))
  const turns = new Turns(2)
  const numbers = (): number[] => turns.look(slots).map(({ number }) => number)
  expect(numbers()).toEqual([1, 2])
  const [one, two] = slots.map(slot => (slot.number < 3 ? send(turns, slot, 10) : []))
  expect(numbers()).toEqual([1, 2])
  settle(slots[1]!, two!)
  // The second worker goes to the end of the queue, and the first one then comes after it.
  add(slots[1]!, 10)
  settle(slots[0]!, one!)
  expect(numbers()).toEqual([2, 3])
})

test('a worker is sent nothing more after a full turn while others wait', () => {
  const slots = [slotWith(1, 5000), slotWith(2, 10)]
  const turns = new Turns(1)
  turns.look(slots)
  const sent = send(turns, slots[0]!, 1024)
  expect(turns.maySend(slots[0]!)).toBe(false)
  settle(slots[0]!, sent.slice(1))
  expect(turns.look(slots)).toEqual([slots[0]])
  settle(slots[0]!, sent)
  expect(turns.look(slots)).toEqual([slots[1]])
  settle(slots[1]!, send(turns, slots[1]!, 10))
  expect(turns.look(slots)).toEqual([slots[0]])
  send(turns, slots[0]!, 3000)
  // No other worker waits.
  expect(turns.maySend(slots[0]!)).toBe(true)
})
