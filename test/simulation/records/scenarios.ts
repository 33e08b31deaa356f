import type { Action } from './model.js'
import type { Scenario, Scope } from './scenario.js'

/** Returns an action that moves 1 from one key to another. */
function move(token: number, from: string, to: string, id?: string): Action {
  return {
    keys: [from, to],
    token,
    ...(id !== undefined && { id }),
    work: read => ({ [from]: (read.get(from) ?? 0) - 1, [to]: (read.get(to) ?? 0) + 1 }),
  }
}

/** Returns an action that copies a value plus ten times its token to another key. */
function copy(token: number, from: string, to: string): Action {
  return { keys: [from, to], token, work: read => ({ [to]: (read.get(from) ?? 0) + 10 * token }) }
}

function add(token: number, key: string, id?: string): Action {
  return {
    keys: [key],
    token,
    ...(id !== undefined && { id }),
    work: read => ({ [key]: (read.get(key) ?? 0) + 1 }),
  }
}

/** Returns a write without locks. */
function put(key: string, value: number | undefined): Action {
  return { keys: [key], token: 0, work: () => ({ [key]: value }) }
}

const opposite: Scenario = {
  name: 'two transfers in opposite ways, of absent keys',
  before: {},
  actions: [move(1, 'a', 'b'), move(2, 'b', 'a')],
}
const skew: Scenario = {
  name: 'two that write what the other one reads',
  before: { a: 1, b: 2 },
  actions: [copy(1, 'a', 'b'), copy(2, 'b', 'a')],
}
const message: Scenario = {
  name: 'the same message twice',
  before: { a: 1, b: 1 },
  actions: [move(1, 'a', 'b', 'm'), move(2, 'a', 'b', 'm')],
}
const oneAfterTwo: Scenario = {
  name: 'a transfer and an earlier holder of one key',
  before: { a: 1, b: 1 },
  actions: [add(1, 'b'), copy(2, 'b', 'a')],
}
const twoAfterOne: Scenario = {
  name: 'a transfer and a later holder of one key',
  before: { a: 1, b: 1 },
  actions: [move(1, 'a', 'b'), add(2, 'b')],
}
const written: Scenario = {
  name: 'a write round the locks',
  before: { a: 1, b: 1 },
  actions: [move(1, 'a', 'b'), put('b', 7)],
}
const deleted: Scenario = {
  name: 'a deletion round the locks',
  before: { a: 1, b: 1 },
  actions: [copy(1, 'b', 'a'), put('b', undefined)],
}
const oneKey: Scenario = { name: 'one key twice', before: { a: 1 }, actions: [add(1, 'a'), add(2, 'a')] }
const oneMessage: Scenario = {
  name: 'the same message twice, to one key',
  before: {},
  actions: [add(1, 'a', 'm'), add(2, 'a', 'm')],
}
const oneKeyThrice: Scenario = {
  name: 'one key three times',
  before: { a: 1 },
  actions: [add(1, 'a'), add(2, 'a'), put('a', 7)],
}
const three: Scenario = {
  name: 'a transfer and others at both of its keys',
  before: { a: 1, b: 1 },
  actions: [move(2, 'a', 'b'), add(1, 'a'), add(3, 'b')],
}

/** Scenarios that take seconds. */
export const small: readonly Scope[] = [
  { scenario: oneKey, faults: 1, kinds: 'all' },
  { scenario: oneMessage, faults: 1, kinds: 'all' },
  { scenario: written, faults: 0, kinds: 'crashes' },
  { scenario: twoAfterOne, faults: 0, kinds: 'crashes' },
  { scenario: oneAfterTwo, faults: 1, kinds: 'all' },
  { scenario: deleted, faults: 1, kinds: 'crashes' },
  { scenario: opposite, faults: 0, kinds: 'crashes' },
]

/** Scenarios that take a minute. */
export const large: readonly Scope[] = [
  { scenario: oneKeyThrice, faults: 2, kinds: 'all' },
  { scenario: twoAfterOne, faults: 1, kinds: 'all' },
  { scenario: written, faults: 1, kinds: 'all' },
  { scenario: deleted, faults: 1, kinds: 'all' },
  { scenario: skew, faults: 1, kinds: 'crashes' },
  { scenario: message, faults: 1, kinds: 'crashes' },
  { scenario: three, faults: 0, kinds: 'crashes' },
]
