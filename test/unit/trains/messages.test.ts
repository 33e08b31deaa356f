import { open } from 'signalbox'
import { beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../apps/trains/clock.js'
import { locationKey } from '../../../apps/trains/domain/location.js'
import { trainKey } from '../../../apps/trains/domain/train.js'
import { Log } from '../../../apps/trains/log/log.js'
import { name, type Field } from '../../../apps/trains/messages/field.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { ignored, type MessageType } from '../../../apps/trains/messages/message-type.js'
import { MessageRegistry, registry, standardTypes } from '../../../apps/trains/messages/registry.js'
import { MessageProcessor } from '../../../apps/trains/worker/message-processor.js'
import { FakeTransaction, runStore, SharedState } from './fake-store.js'

let state: SharedState
beforeEach(() => {
  state = new SharedState()
})

/**
 * Applies a message as a worker would, with only the keys that its type names. Returns the event and the details in one
 * object.
 */
async function apply(incoming: object, types = registry) {
  const message = types.validate(incoming)
  const type = types.typeOf(message)
  const keys = await type.keys(message, async key => stored(key) ?? undefined)
  expect(keys[0]).toBe(trainKey(message.train))
  expect(new Set(keys).size).toBe(keys.length)
  const transaction = new FakeTransaction(state, keys)
  const { event, details } = type.handle(message, transaction)
  transaction.commit()
  return { event, ...details }
}

const stored = (key: string) => JSON.parse(state.values.get(key) ?? 'null') as unknown
const at = (id: string) => stored(locationKey(id))
const create = (train: string, location: string) => apply({ id: 'c', type: 'create', train, location })
const move = (train: string, to: string) => apply({ id: 'm', type: 'move', train, to })
const deletion = (train: string) => apply({ id: 'd', type: 'delete', train })

describe('messages', () => {
  test('a train is created, moves and is deleted, and each location counts its part', async () => {
    expect(await create('T', 'A')).toEqual({ event: 'created', at: 'A' })
    expect(stored(trainKey('T'))).toEqual({ id: 'T', location: 'A' })
    expect(await move('T', 'B')).toEqual({ event: 'moved', from: 'A', to: 'B' })
    expect(stored(trainKey('T'))).toEqual({ id: 'T', location: 'B' })
    expect(await deletion('T')).toEqual({ event: 'deleted', at: 'B' })
    expect(stored(trainKey('T'))).toBeNull()
    expect(at('A')).toEqual({ id: 'A', created: 1, deleted: 0, arrived: 0, departed: 1 })
    expect(at('B')).toEqual({ id: 'B', created: 0, deleted: 1, arrived: 1, departed: 0 })
  })
})

describe('refused messages', () => {
  const refused: readonly (readonly [string, unknown, string])[] = [
    ['a list', [], 'a message must be an object, got an array'],
    ['no id', { type: 'create' }, '"id" is missing'],
    ['an empty id', { id: '', type: 'create' }, '"id" must not be empty'],
    ['no type', { id: '1' }, '"type" is missing'],
    ['another type', { id: '1', type: 'crate' }, '"type" must be one of create, move, delete, got "crate"'],
    ['no train', { id: '1', type: 'delete' }, '"train" is missing'],
    ['no location', { id: '1', type: 'create', train: 'T' }, '"location" is missing'],
    [
      'a list for a location',
      { id: '1', type: 'move', train: 'T', to: [] },
      '"to" must be a string, got an array',
    ],
    [
      'a long name',
      { id: '1', type: 'delete', train: 'T'.repeat(201) },
      '"train" must have at most 200 characters, got 201',
    ],
    ['a line end', { id: '1', type: 'delete', train: 'T\n' }, '"train" must not contain control characters'],
    [
      'half a character',
      { id: '1', type: 'delete', train: '\uD83D' },
      '"train" must not contain control characters or invalid ones',
    ],
  ]
  test.each(refused)('%s', (_, incoming, reason) => {
    expect(() => registry.validate(incoming)).toThrow(reason)
  })

  test('unknown fields are dropped', () => {
    expect(registry.validate({ id: '1', type: 'delete', train: '🚂', to: 'A', note: 1 })).toEqual({
      id: '1',
      type: 'delete',
      train: '🚂',
    })
  })
})

interface Hold extends Message {
  readonly type: 'hold'
  readonly minutes: number
}

const minutes: Field<number> = value =>
  typeof value === 'number' && value > 0 ? { value } : { refused: 'must be a number greater than 0' }

/** Stops a train for some minutes at the location where it is. */
const hold: MessageType<Hold> = {
  type: 'hold',
  fields: { train: name, minutes },
  async keys(message, read) {
    const train = (await read(trainKey(message.train))) as { location: string } | undefined
    return [trainKey(message.train), ...(train ? [locationKey(train.location)] : [])]
  },
  handle(message, transaction) {
    const train = transaction.get(trainKey(message.train)) as { location: string } | undefined
    if (!train) return ignored('no such train')
    const location = transaction.get(locationKey(train.location)) as { held?: number }
    const held = (location.held ?? 0) + message.minutes
    transaction.put(locationKey(train.location), { ...location, held })
    return { event: 'held', details: { at: train.location, minutes: message.minutes } }
  },
}

describe('a further message type', () => {
  const types = new MessageRegistry([...standardTypes, hold])

  test('needs nothing but its own module', async () => {
    await create('T', 'A')
    expect(await apply({ id: 'h', type: 'hold', train: 'T', minutes: 5 }, types)).toEqual({
      event: 'held',
      at: 'A',
      minutes: 5,
    })
    expect(at('A')).toMatchObject({ created: 1, held: 5 })
    expect(() => types.validate({ id: 'h', type: 'hold', train: 'T', minutes: 0 })).toThrow(
      '"minutes" must be a number greater than 0',
    )
    expect(() => new MessageRegistry([...standardTypes, hold, hold])).toThrow(
      "two message types called 'hold'",
    )
  })

  test('that omits one of its keys is reported, and its message is dead-lettered', async () => {
    const forgetful: MessageType<Hold> = { ...hold, keys: message => [trainKey(message.train)] }
    const lines: string[] = []
    await using box = await open('memory:')
    const processor = new MessageProcessor(
      runStore(box.store('trains', { group: { maxSize: 8, maxTime: 1000 } })),
      new MessageRegistry([...standardTypes, forgetful]),
      { lockWait: 1000, lease: 30_000, lockTries: 1, attempts: 3 },
      new Log({ write: line => lines.push(line) }, 'error'),
      systemClock,
    )
    const messages = [
      { id: '1', type: 'create', train: 'T', location: 'A' },
      { id: '2', type: 'hold', train: 'T', minutes: 5 },
    ]
    const others = [{ id: '3', type: 'create', train: 'U', location: 'A' }]
    const given = {
      event: 'dead-lettered',
      failure: expect.stringContaining('LOC_A is not a key of the message'),
    }
    // The message also fails together with others, although one of them has named the key.
    const settled = await Promise.all([messages, others].map(run => processor.process(run)))
    expect(settled).toMatchObject([[{ event: 'created' }, given], [{ event: 'created' }]])
    expect(lines.map(line => JSON.parse(line) as unknown)).toMatchObject([
      { event: 'dead-lettered', message: '2', attempts: 1, reason: expect.stringContaining('LOC_A') },
    ])
  })
})
