import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { builtProgram } from '../built-program.js'
import type { Contest } from './contender.process.js'
import { Journal, type Verdict } from './journal.js'

const PROGRAM = 'test/support/file/contender.process.js'
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']

export interface FightOptions {
  readonly url: string
  readonly journal: string
  readonly processes: number
  /** Number of threads of this process, in addition to the processes. */
  readonly threads: number
  /** Number of times that each contender acquires its keys. */
  readonly rounds: number
  /** The lease of the locks, in milliseconds: the time until they expire if the death of a contender goes unnoticed. */
  readonly lease: number
  /** Number of rounds of all contenders between two kills, so that a slow machine kills fewer contenders, too. */
  readonly killEvery: number
  readonly seed: number
}

/** The outcome of a fight. */
export interface FightResult extends Verdict {
  readonly kills: number
  /** Messages about contenders that failed without being killed. */
  readonly failures: readonly string[]
}

/** A contender that is running. */
interface Contender {
  readonly who: string
  readonly rounds: number
  /** Resolves to `well`, `killed`, or a message about the failure. */
  readonly ended: Promise<string>
  kill(): void
}

/**
 * Lets contenders in processes and threads compete for keys. Now and then kills one and starts another, which does the
 * remaining rounds. Ends when all rounds are done.
 */
export async function fight(options: FightOptions): Promise<FightResult> {
  const journal = new Journal(options.journal)
  const random = new Random(options.seed)
  const failures: string[] = []
  const running = new Set<Contender>()
  let kills = 0

  const start = async (kind: 'process' | 'thread', rounds: number): Promise<void> => {
    const seed = random.below(2 ** 31)
    const { journal: path, lease, url } = options
    const contest = { url, journal: path, keys: KEYS, rounds, lease, seed }
    const contender = kind === 'process' ? inProcess(contest) : await inThread(contest)
    running.add(contender)
    const end = await contender.ended
    running.delete(contender)
    if (end === 'killed') await start(kind, rounds - journal.rounds(contender.who))
    else if (end !== 'well') failures.push(`${contender.who} ended with ${end}`)
  }

  const all = Promise.all([
    ...Array.from({ length: options.processes }, () => start('process', options.rounds)),
    ...Array.from({ length: options.threads }, () => start('thread', options.rounds)),
  ])
  for (;;) {
    const over = await Promise.race([all, pause(5)])
    if (over) break
    if (journal.rounds() < (kills + 1) * options.killEvery) continue
    // Every other kill ends a contender that holds keys.
    const inside = kills % 2 === 0 ? journal.inside() : []
    const candidates = [...running].filter(({ who }) => inside.length === 0 || inside.includes(who))
    const victim = candidates[random.below(Math.max(candidates.length, 1))]
    if (!victim) continue
    journal.killing(victim.who, systemClock.now())
    victim.kill()
    kills++
    await victim.ended
  }
  return { ...journal.judge(), kills, failures }
}

function inProcess(contest: Contest): Contender {
  const child: ChildProcess = fork(builtProgram(PROGRAM), [JSON.stringify(contest)], { execArgv: [] })
  const ended = once(child, 'exit').then(([status, signal]: unknown[]) => {
    if (signal === 'SIGKILL') return 'killed'
    return status === 0 ? 'well' : `status ${String(status)}, signal ${String(signal)}`
  })
  return {
    who: `${child.pid!}.0`,
    rounds: contest.rounds,
    ended,
    kill: () => void child.kill('SIGKILL'),
  }
}

async function inThread(contest: Contest): Promise<Contender> {
  const worker = new Worker(builtProgram(PROGRAM), { workerData: contest })
  await once(worker, 'online')
  let killed = false
  let failure: string | undefined
  worker.once('error', error => (failure = String(error)))
  const who = `${process.pid}.${worker.threadId}`
  const ended = once(worker, 'exit').then(() => (killed ? 'killed' : (failure ?? 'well')))
  const kill = (): void => {
    killed = true
    worker.postMessage('end')
  }
  return { who, rounds: contest.rounds, ended, kill }
}
