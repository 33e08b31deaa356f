import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'
import { until } from '../../packages/conformance/src/time.js'
import { builtProgram } from '../support/built-program.js'
import { startEngine } from '../support/servers/engines.js'
import { Running } from './command-line.js'

/** The period of the schedule, in milliseconds. Much longer than the lease of one second. */
const PERIOD = 4000
const PROCESSES = 4
const SLOTS = 6
const PATIENT = 50_000

interface Note {
  readonly event: string
  readonly slot: number
  readonly pid: number
  readonly at: number
}

test.concurrent.for(['files', 'Redis', 'PostgreSQL'] as const)(
  'on %s, processes of which some are killed during a run do each slot once, and never two runs at the same time',
  { timeout: 120_000 },
  // The hook of the test's context, because the global one would belong to another test after a wait.
  async (engine, { onTestFinished }) => {
    const folder = reapedFolder('schedule')
    const journal = join(folder, 'journal')
    writeFileSync(journal, '')
    const allowed = join(folder, 'allowed')
    writeFileSync(allowed, '0')
    const url = engine === 'files' ? `file:${folder}/locks` : await startEngine(engine, onTestFinished)
    const processes: Running[] = []
    onTestFinished(() => processes.forEach(process => process.kill('SIGKILL')))
    const add = (): void => {
      const argv = [
        builtProgram('test/integration/scheduler.process.js'),
        url,
        journal,
        allowed,
        String(PERIOD),
      ]
      processes.push(new Running(process.execPath, argv, folder, {}))
    }
    const notes = (): Note[] =>
      readFileSync(journal, 'utf8')
        .split('\n')
        .filter(line => line !== '')
        .map(line => line.split(' '))
        .map(([event, slot, pid, at]) => ({
          event: event!,
          slot: Number(slot),
          pid: Number(pid),
          at: Number(at),
        }))
    const ended = (): Note[] => notes().filter(({ event }) => event === 'end')

    const areReady = (): boolean => processes.every(({ stdout }) => stdout !== '')

    for (let count = 0; count < PROCESSES; count++) add()
    await until('all are ready', areReady, PATIENT)
    const killed = new Set<number>()
    for (let count = 0; count < SLOTS; count++) {
      // A run may have begun before all processes were ready.
      const before = notes().findLastIndex(({ event }) => event === 'end') + 1
      await until('a run begins', () => notes().length > before, PATIENT)
      const { pid, slot } = notes()[before]!
      // In every other slot, kills the process that runs it.
      if (count % 2 === 1) {
        processes.find(process => process.pid === pid)!.kill('SIGKILL')
        killed.add(pid)
        add()
      }
      writeFileSync(allowed, String(slot))
      await until('the slot is done', () => ended().length > count, PATIENT)
    }
    writeFileSync(allowed, 'Infinity')
    await until('the last one is ready, too', areReady, PATIENT)
    const alive = processes.filter(({ pid }) => !killed.has(pid))
    for (const process of alive) process.kill('SIGTERM')
    for (const process of alive) expect(await process.ended).toMatchObject({ status: 0, stderr: '' })

    const all = notes()
    const slots = ended().map(({ slot }) => slot)
    // Each slot has one complete run, and none is missing.
    expect(slots).toEqual(slots.map((_slot, index) => slots[0]! + index * PERIOD))
    // Every run that did not end belongs to a killed process, and is followed by another run.
    for (const [index, { event, pid, slot }] of all.entries()) {
      if (event === 'end' || killed.has(pid)) continue
      expect(all[index + 1]).toMatchObject({ event: 'end', pid, slot })
    }
    expect(all.filter(({ event }) => event === 'begin')).toHaveLength(slots.length + killed.size)
    for (const { event, slot, at } of all) if (event === 'begin') expect(at).toBeGreaterThanOrEqual(slot)
  },
)
