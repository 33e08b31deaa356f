import { Option, type Command } from 'commander'
import type { Box } from '../index.js'
import { systemClock } from '../clock.js'
import { duration } from './arguments.js'
import { columns } from './columns.js'
import { engineOption, withBox } from './engine.js'
import { Interrupt } from './interrupt.js'
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

interface BenchOptions {
  engine?: string
  json?: boolean
  time: number
}

/** So many callers take so many keys, each of them one key again and again. */
interface Work {
  readonly callers: number
  readonly keys: number
}

const MANY = 64
const WORKS: readonly Work[] = [
  { callers: 1, keys: 1 },
  { callers: MANY, keys: MANY },
  { callers: MANY, keys: 1 },
]

/** The number of acquires and releases of a lock, and how long the acquires took: milliseconds. */
interface Figures extends Work {
  readonly cycles: number
  readonly perSecond: number
  readonly median: number
  readonly p99: number
  readonly longest: number
}

/** Adds `signalbox bench`. */
export function addBench(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('bench')
    .description('measure how often a lock of an engine can be taken and released, from here and one process')
    .addOption(engineOption())
    .addOption(
      new Option('--time <time>', 'how long each work goes on').argParser(duration).default(2000, '2s'),
    )
    .option('--json', 'a line of JSON for each work instead of a table')
    .action(async ({ engine, json, time }: BenchOptions) => {
      using interrupt = new Interrupt()
      const figures = await withBox(
        engine,
        box => interrupt.during(signal => measureAll(box, time, signal)),
        { creates: true, label: 'signalbox bench' },
      )
      stdout.write(json ? figures.map(line => `${printableJson(line)}\n`).join('') : table(figures))
    })
}

async function measureAll(box: Box, time: number, signal: AbortSignal): Promise<Figures[]> {
  const figures: Figures[] = []
  for (const work of WORKS) {
    // What is made for a key when it is taken for the first time is not what is measured.
    await waitsOf(box, work, 0, signal)
    const begun = systemClock.now()
    const waits = await waitsOf(box, work, time, signal)
    figures.push({ ...work, ...summary(waits, systemClock.now() - begun) })
  }
  return figures
}

/** Takes and releases the keys for so long, by each caller once at the least, and tells how long each had to wait. */
async function waitsOf(
  box: Box,
  { callers, keys }: Work,
  time: number,
  signal: AbortSignal,
): Promise<Float64Array> {
  const waits: number[] = []
  const until = systemClock.now() + time
  const call = async (_: unknown, caller: number): Promise<void> => {
    const mutex = box.mutex(`signalbox-bench/${caller % keys}`)
    do {
      const asked = systemClock.now()
      const grant = await mutex.acquire({ signal })
      waits.push(systemClock.now() - asked)
      await grant.release()
    } while (systemClock.now() < until)
  }
  await Promise.all(Array.from({ length: callers }, call))
  return Float64Array.from(waits).sort()
}

function summary(waits: Float64Array, took: number): Omit<Figures, keyof Work> {
  const at = (share: number): number => Number(waits[Math.floor((waits.length - 1) * share)]!.toFixed(3))
  const perSecond = Math.round((waits.length * 1000) / took)
  return { cycles: waits.length, perSecond, median: at(0.5), p99: at(0.99), longest: at(1) }
}

const HEAD = ['CALLERS', 'KEYS', 'CYCLES', 'A SECOND', 'MEDIAN WAIT', '99 %', 'LONGEST']

function table(figures: readonly Figures[]): string {
  const rows = figures.map(({ callers, keys, cycles, perSecond, median, p99, longest }) => [
    ...[callers, keys, cycles, perSecond].map(String),
    ...[median, p99, longest].map(wait => `${wait.toFixed(2)}ms`),
  ])
  return columns([HEAD, ...rows], [...HEAD.keys()])
}
