import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { check } from '../../../apps/chaos/check/check.js'
import type { Fault, History, LockRequest, StoreCall } from '../../../apps/chaos/history.js'
import { readHistory } from '../../../apps/chaos/history-file.js'

const folder = fileURLToPath(new URL('../../fixtures/chaos/', import.meta.url))

function history(name: string): History {
  return readHistory(`${folder}${name}.json`)
}

/** The fields that a request has once it is granted. */
type Grant = Pick<LockRequest, 'granted' | 'token' | 'heldUntil' | 'leaving' | 'left'>

/** The period from before the first request of each history to the end of its last request. */
const WHOLE = { from: 0, until: 1e6 }

/**
 * Histories that were recorded on Redis and then changed in one place, as a broken engine would do. Each has its only
 * finding.
 */
const bad: Readonly<Record<string, RegExp>> = {
  'bad-overlap': /^P1 .* both held run:\w+$/,
  'bad-release': /^P1 no order of grants and releases explains/,
  'bad-token-falls': /^P2 the token of .* fell/,
  'bad-token-twice': /^P2 a token of .* was given twice/,
  'bad-overtaken': /^P4 3\.3, .* before 2\.2/,
  'bad-fence': /^P2 .* wrote over what it had not read/,
  'bad-fence-falls': /^P2 .* wrote to run:\w+ after token \d+, and was not refused/,
  'bad-write-deleted': /^P2 .* found 5 in the fenced register of run:one, where the writes before it left 4/,
  'bad-writes-deleted':
    /^P2 .* found 12 in the fenced register of run:one, where the writes before it left 2/,
  'bad-last-write-deleted': /^P2 the fenced register of run:one has 9 at the end, and the writes leave it 8/,
  'bad-write-and-request-deleted':
    /^P2 .* found 5 in the (un)?fenced register of run:one, where the writes before it left 4/,
  'bad-write-late':
    /^P2 .* wrote to the (un)?fenced register of run:one at 8816.699 ms, and the write before it was at 9089.716 ms/,
  'bad-write-early': /^P2 .* wrote to run:one at 9349.972 ms, outside its grant/,
  'bad-write-after-grant': /^P2 .* wrote to run:one at 10338.25 ms, outside its grant/,
  'bad-request-backwards':
    /^P1 the request of 3\.3 for run:crowd has heldUntil at \S+ ms, before granted at \S+ ms/,
  'bad-no-requests': /^(P9 no lock was ever granted|P2 .* wrote to run:\w+ without a grant of it)/,
  'bad-lost': /^P3 .* lost run:\w+, granted at .* and nothing had kept it from the engine/,
  'bad-transfer-lost':
    /^P13 (.* both made change \d+ of|anna has 8 changes, and 9 transfers were done|\w+ has \d+, and the transfers leave it)/,
  'bad-transfer-doubled': /^P13 .* has \d+ changes, and \d+ transfers were done/,
  'bad-transfer-dropped':
    /^P13 (anna|cleo) has (\d+ changes, and \d+ transfers were done|\d+, and the transfers leave it)/,
  'bad-transfer-refused':
    /^P13 (anna|cleo) has (\d+ changes, and \d+ transfers were done|\d+, and the transfers leave it)/,
  'bad-money': /^P13 \w+ has \d+, and the transfers leave it \d+/,
  'bad-money-moved': /^P13 (anna|ben) has \d+, and the transfers leave it \d+/,
  'bad-version-lowered': /^P13 one value of \S+ had two versions/,
  'bad-stale-read': /^P13 no order of the calls explains/,
  'bad-compare-and-set': /^P13 no order of the calls explains/,
  'bad-write-lost': /^P13 no order of the calls explains/,
  'bad-recovery-lowered': /^P9 no grant shows that recovery took 24 ms after the fault "cut" at 8493 ms/,
  'bad-recovery': /^P9 recovery took 1501 ms after the fault "cut"/,
}

/** Histories that the harness never writes, with their errors. */
const refused: Readonly<Record<string, RegExp>> = {
  'bad-recovery-negative': /is no history of a run: the field faults is missing or malformed/,
}

test('all recorded histories are looked at', () => {
  const names = readdirSync(folder).map(name => name.replace('.json', ''))
  expect(names.sort()).toEqual(
    [...Object.keys({ ...bad, ...refused }), 'good-calm', 'good-crowd', 'good-faults'].sort(),
  )
})

test.each(['good-calm', 'good-faults'])('%s breaks no promise', name => {
  const { findings, undecided, grants, transfers } = check(history(name))
  expect({ findings, undecided }).toEqual({ findings: [], undecided: 0 })
  expect([grants > 20, transfers.applied > 10]).toEqual([true, true])
})

test.each(Object.entries(bad))('%s is rejected, for the right reason', (name, reason) => {
  const texts = check(history(name)).findings.map(({ promise, message }) => `${promise} ${message}`)
  expect(texts.filter(text => reason.test(text))).not.toEqual([])
  // Decreasing tokens and overlapping grants also have no order.
  const others = texts.filter(text => !reason.test(text) && !/^P1 no order of grants/.test(text))
  expect(others).toEqual([])
})

test.each(Object.entries(refused))('%s is no history', (name, reason) => {
  expect(() => history(name)).toThrow(reason)
})

const calm = history('good-calm')

test.each<[string, keyof History, unknown]>([
  ['a negative lease', 'lease', -1],
  ['no counters', 'counters', undefined],
  ['a grant that was never held', 'requests', [{ ...calm.requests[0]!, heldUntil: undefined }]],
  ['a fault that ends before it begins', 'faults', [{ kind: 'cut', at: 5, until: 4 }]],
])('%s is in no history', (_what, part, spoiled) => {
  const own = mkdtempSync(join(tmpdir(), 'chaos-'))
  try {
    const path = join(own, 'history.json')
    const write = (content: object): void => writeFileSync(path, JSON.stringify(content))
    write(calm)
    expect(readHistory(path)).toEqual(calm)
    write({ ...calm, [part]: spoiled })
    expect(() => readHistory(path)).toThrow(`the field ${part} is missing or malformed`)
  } finally {
    rmSync(own, { recursive: true })
  }
})

test.each<[string, (history: History) => Partial<History>, string]>([
  [
    'a counter whose final value is missing',
    () => ({ counters: {} }),
    'P2 the final value of the fenced register of run:one is missing',
  ],
  [
    'a counter to which no write is told',
    ({ updates }) => ({ updates: updates.filter(({ key, fenced }) => key !== 'run:one' || !fenced) }),
    'P2 the fenced register of run:one has 9 at the end, and the writes leave it 0',
  ],
  [
    'a lost increment that is not reported',
    ({ updates }) => ({
      updates: updates.filter(({ key, fenced, found }) => key !== 'run:one' || fenced || found !== 3),
    }),
    'P2 1.1 with token 1838394209659557888 found 4 in the unfenced register of run:one, where the writes before it left 3',
  ],
  [
    'a request that is seen before it is made',
    ({ requests }) => ({
      requests: requests.map((request, n) => (n === 0 ? { ...request, queued: 1 } : request)),
    }),
    'P1 the request of 2.2 for run:two has queued at 1 ms, before asked at 4489.744 ms',
  ],
  [
    'a transfer that is settled before it is asked for',
    ({ transfers }) => ({
      transfers: transfers.map((transfer, n) => (n === 0 ? { ...transfer, settled: 1 } : transfer)),
    }),
    'P13 a delivery of 2.2 3 by 2.2 has settled at 1 ms, before asked at 4516.603 ms',
  ],
  [
    'a call that ends before it begins',
    ({ calls }) => ({ calls: calls.map((call, n) => (n === 0 ? { ...call, until: 1 } : call)) }),
    'P13 a call of 2.2 for 51110-1 has until at 1 ms, before from at 4517.11 ms',
  ],
])('%s is a finding', (_what, spoil, text) => {
  const { findings } = check({ ...calm, ...spoil(calm) })
  expect(findings.map(({ promise, message }) => `${promise} ${message}`)).toContain(text)
})

test('where clients queue, each two grants that come in the wrong order are found', () => {
  const { requests, ...rest } = history('good-crowd')
  const { orders, findings } = check({ ...rest, requests })
  expect(findings).toEqual([])
  const pairs = requests.flatMap(earlier =>
    requests.filter(later => isBehind(later, earlier)).map(later => [earlier, later] as const),
  )
  expect(pairs).toHaveLength(orders)
  expect(orders).toBeGreaterThan(100)
  for (const [earlier, later] of pairs) {
    const swapped = requests.map(each =>
      each === earlier
        ? { ...each, ...grantOf(later) }
        : each === later
          ? { ...each, ...grantOf(earlier) }
          : each,
    )
    const found = check({ ...rest, requests: swapped }).findings
    const text = `${later.who}, asking at ${later.asked}, came to ${later.key} before ${earlier.who}, in the queue at ${earlier.queued!}`
    expect(found).toContainEqual({ promise: 'P4', message: text })
  }
})

/** Whether a request was made while another one was seen in the queue. */
function isBehind(later: LockRequest, { queued, granted }: LockRequest): boolean {
  return queued !== undefined && queued <= later.asked && later.asked < granted!
}

function grantOf({ granted, token, heldUntil, leaving, left }: LockRequest): Required<Grant> {
  return { granted: granted!, token: token!, heldUntil: heldUntil!, leaving: leaving!, left: left! }
}

test.each<[string, Partial<History>, boolean]>([
  ['nothing', {}, false],
  ['a fault of the client that was overtaken', { faults: [stopOf(2)] }, true],
  ['a fault of the client that overtook', { faults: [stopOf(3)] }, false],
  ['a fault of all', { faults: [stopOf(undefined)] }, true],
  ['a clock that was set', { faults: [{ ...stopOf(2), kind: 'shift clock' }] }, false],
  ['a harness that did not run', { stalls: [WHOLE] }, true],
])('%s explains that a request was overtaken: %s', (_what, seen, isExplained) => {
  const { orders, findings } = check({ ...history('bad-overtaken'), ...seen })
  expect({ orders, isExplained: findings.length === 0 }).toEqual({ orders: isExplained ? 0 : 1, isExplained })
})

test('a recovery names what was measured: others at the held key, or any client', () => {
  const faults = [
    { kind: 'kill', client: 1, at: 0, until: 10, key: 'run:a', recovery: 700 },
    { kind: 'kill', client: 1, at: 2000, until: 2010, recovery: 5 },
    { kind: 'hold replies', client: 2, at: 3000, until: 4000, key: 'run:a', recovery: 40, others: 1700 },
    { kind: 'hold replies', client: 2, at: 5000, until: 6000, recovery: 60 },
    { kind: 'lose replies', client: 2, at: 7000, until: 8000, key: 'run:a', recovery: 20 },
  ]
  const limits = { kill: 1500, 'hold replies': 1500, 'lose replies': 1500 }
  const requests = [
    grantAt('3.3', 'run:a', 700),
    grantAt('3.3', 'run:b', 2005),
    grantAt('2.2', 'run:b', 4040),
    grantAt('3.3', 'run:a', 4700),
    grantAt('2.2', 'run:b', 6060),
    grantAt('2.2', 'run:b', 8020),
  ]
  const seen = { ...history('bad-overtaken'), requests, faults }
  const { recoveries, findings } = check({ ...seen, limits })
  expect(recoveries.map(({ kind, faults: times, median }) => [kind, times, median])).toEqual([
    ['kill', 1, 700],
    ['kill, held nothing', 1, 5],
    ['hold replies', 2, 50],
    ['hold replies, others', 1, 1700],
    ['lose replies', 1, 20],
    ['lose replies, others', 1, Infinity],
  ])
  expect(findings.map(({ promise, message }) => `${promise} ${message}`)).toEqual([
    'P9 recovery took 1700 ms after the fault "hold replies, others" at 3000 ms, where 1500 ms are allowed',
    'P9 no recovery after the fault "lose replies, others" at 7000 ms, where 1500 ms are allowed',
  ])
})

/** Returns a grant to a client that requested it before all faults. */
function grantAt(who: string, key: string, granted: number): LockRequest {
  return { who, key, asked: 0, granted, heldUntil: granted }
}

test.each<[string, Partial<Fault>, readonly LockRequest[]]>([
  ['of another client', { kind: 'cut', recovery: 5 }, [grantAt('1.1', 'run:a', 25)]],
  ['before its end', { kind: 'cut', recovery: 5 }, [grantAt('2.2', 'run:a', 15)]],
  [
    'of the stopped client itself',
    { kind: 'stop', key: 'run:a', recovery: 5 },
    [grantAt('2.2', 'run:a', 15)],
  ],
  ['of another key', { kind: 'kill', key: 'run:a', recovery: 5 }, [grantAt('1.1', 'run:b', 15)]],
  ['that came later', { kind: 'kill', key: 'run:a', recovery: 5 }, [grantAt('1.1', 'run:a', 15.001)]],
  ['asked for before the clock was set', { kind: 'shift clock', recovery: 5 }, [grantAt('2.2', 'run:a', 25)]],
])('a recovery that no grant shows is a finding: %s', (_what, fault, requests) => {
  const faults = [{ kind: 'cut', client: 2, at: 10, until: 20, ...fault }]
  const limits = { [faults[0]!.kind]: 1000 }
  const { findings } = check({ ...history('bad-overtaken'), requests, faults, limits })
  expect(findings.map(({ promise, message }) => `${promise} ${message}`)).toEqual([
    expect.stringMatching(/^P9 no grant shows that recovery took 5 ms after the fault "[\w ]+" at 10 ms$/),
  ])
})

test('a recovery from a fault for which the history names no limit is a finding', () => {
  const requests = [grantAt('2.2', 'run:a', 25)]
  const faults = [{ kind: 'cut', client: 2, at: 10, until: 20, recovery: 5 }]
  const { findings } = check({ ...history('bad-overtaken'), requests, faults, limits: {} })
  expect(findings).toEqual([
    { promise: 'P9', message: 'recovery took 5 ms after the fault "cut" at 10 ms, where 0 ms are allowed' },
  ])
})

test('a recovery counts from the first request where that came after the fault', () => {
  const requests = [
    { ...grantAt('1.1', 'run:a', 40), asked: 30 },
    { ...grantAt('1.1', 'run:a', 90), asked: 50 },
  ]
  const faults = [{ kind: 'kill', client: 2, at: 10, until: 20, key: 'run:a', recovery: 10 }]
  const { findings } = check({ ...history('bad-overtaken'), requests, faults, limits: { kill: 1000 } })
  expect(findings).toEqual([])
})

test('a transfer without an answer is a finding until it is delivered again', () => {
  const { transfers, ...rest } = history('good-faults')
  const unsettled = transfers.filter(({ who }) => who !== 'harness')
  const texts = check({ ...rest, transfers: unsettled }).findings.map(({ message }) => message)
  expect(texts).toContain('whether 3.3 8 was done was not found out')
})

test('missing accounts are a finding where money was moved', () => {
  const { accounts: _untold, ...rest } = history('good-calm')
  const { findings } = check(rest)
  expect(findings).toContainEqual({ promise: 'P13', message: 'the balance of account anna is missing' })
})

test.each<[string, Partial<History>, boolean]>([
  ['a fault of the client', { faults: [stopOf(1), stopOf(2), stopOf(3)] }, true],
  ['a fault of all', { faults: [stopOf(undefined)] }, true],
  ['a fault of another client', { faults: [stopOf(9)] }, false],
  [
    'a clock that was set',
    { faults: [1, 2, 3].map(client => ({ ...stopOf(client), kind: 'shift clock' })) },
    false,
  ],
  ['a harness that did not run', { stalls: [WHOLE] }, true],
  ['another client that did not run', { stalls: [{ who: '9.9', ...WHOLE }] }, false],
  ['an engine that answered late', { calls: [slowCall()] }, true],
  ['a late answer to a client that was stopped', { calls: [slowCall()], faults: [stopOf(9)] }, false],
])('%s explains that a grant was lost: %s', (_what, seen, isExplained) => {
  const { findings } = check({ ...history('bad-lost'), limits: { stop: 1500, 'shift clock': 1500 }, ...seen })
  expect(findings.filter(({ promise }) => promise === 'P3').length === 0).toBe(isExplained)
})

function stopOf(client: number | undefined): Fault {
  return { kind: 'stop', ...(client !== undefined && { client }), at: 0, until: 1e6, interrupted: true }
}

function slowCall(): StoreCall {
  return { who: '9.9', key: 'slow', kind: 'get', value: '', version: 0, end: 'done', ...WHOLE }
}

test('an error that escapes from the library is a finding', () => {
  const { findings } = check({ ...history('good-calm'), escapes: ['TypeError'] })
  expect(findings).toEqual([{ promise: 'P10', message: 'TypeError' }])
})
