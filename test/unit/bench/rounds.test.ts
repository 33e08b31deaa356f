import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { workReport } from '../../../bench/report.js'
import { measured } from '../../../bench/rounds.js'
import { markdown, workText } from '../../../bench/tables.js'
import type { Sample, Subject, Work } from '../../../bench/work.js'

let folder: string
/** The steps so far, in order. */
let done: string[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-rounds-'))
  done = []
})

afterEach(() => rm(folder, { recursive: true }))

const SOUND: Sample = { operations: 10, milliseconds: 100, waits: Float64Array.of(1, 2) }

/** Returns a subject that calls `measure` for each measurement, with its number. The warm-up has number 0. */
function subject(
  name: string,
  measure: (time: number, milliseconds: number) => Sample = () => SOUND,
): Subject {
  let times = 0
  return {
    name,
    async start() {
      return {
        async measure(milliseconds) {
          done.push(name)
          return measure(times++, milliseconds)
        },
        async stop() {
          done.push(`${name} stops`)
        },
      }
    },
  }
}

function work(...subjects: readonly Subject[]): Work {
  const comparisons = subjects.slice(1).map(({ name }) => ({
    measure: 'opsPerSecond' as const,
    of: subjects[0]!.name,
    to: name,
  }))
  return { part: 'part', name: 'work', seconds: 2, subjects, comparisons }
}

function run(...subjects: readonly Subject[]): ReturnType<typeof measured> {
  return measured(work(...subjects), { rounds: 2, seconds: 0.1 }, folder, () => undefined)
}

function failing(when: number): (time: number) => Sample {
  return time => {
    if (time === when) throw new Error('the server\nhas gone')
    return SOUND
  }
}

test('subjects are warmed up, and take turns in the opposite order in every other round', async () => {
  await run(subject('a'), subject('b'))
  expect(done).toEqual(['a', 'b', 'a', 'b', 'b', 'a', 'a stops', 'b stops'])
})

test.each([
  ['in its warm-up', 0, 1],
  ['in a round', 1, 2],
])('a subject that fails %s is not measured again, and the others go on', async (_, when, times) => {
  const samples = await run(subject('a'), subject('bad', failing(when)))
  expect(done.filter(name => name === 'bad')).toHaveLength(times)
  expect(done).toContain('bad stops')
  expect(samples.map(one => one.samples.map(({ broken }) => broken))).toEqual([
    [undefined, undefined],
    ['it failed: the server'],
  ])
})

test('a subject that fails in one round has no figures or ratios, and its row says why', async () => {
  const subjects = [subject('a'), subject('bad', failing(2)), subject('c')]
  const result = workReport(work(...subjects), await run(...subjects))
  expect(result.rows.map(({ subject: name, opsPerSecond }) => [name, opsPerSecond?.median])).toEqual([
    ['a', 100],
    ['bad', undefined],
    ['c', 100],
  ])
  expect(result.ratios.map(({ to }) => to)).toEqual(['c'])
  const machine = {
    cpu: 'x',
    cores: 1,
    memory: 1,
    system: 'x',
    fileSystem: 'x',
    node: '20',
    load: 0,
    versions: { signalbox: '0' },
  }
  const report = { ...result, command: 'bench', date: '2026-01-01T00:00:00Z', machine }
  for (const text of [workText(result), markdown(report)])
    expect(text).toContain('bad: broken, it failed: the server')
})
