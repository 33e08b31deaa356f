import { Option, type Command } from 'commander'
import { systemClock } from '../base/clock.js'
import { BusyError, LostError, TimedOutError } from '../base/errors.js'
import type { Box, Claim, Grant } from '../index.js'
import { slotAt } from '../slots.js'
import { pause } from '../base/pause.js'
import { duration, keysOf, permitsOf, textOf } from './arguments.js'
import { withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'
import { reportingWaits } from './waits.js'
import { failureOf, reporter, work, type Report } from './work.js'
import { addWorkOptions, labelOf, type WorkFlags } from './work-options.js'

interface RunOptions extends WorkFlags {
  lock: readonly string[]
  shared?: boolean
  permits?: { permits: number; max: number }
  wait?: number
  skipIfBusy?: boolean
  holdAtLeast?: number
  oncePer?: string
}

interface Surroundings {
  readonly report: Report
  /** Aborts when a signal asks this process to end. While the command runs, it gets the signal too. */
  readonly interrupt: AbortSignal
  readonly stderr: Terminal['stderr']
}

export function addRun(program: Command, { stderr }: Terminal): void {
  const run = program
    .command('run')
    .description('run a command while holding locks, and exit with its status')
    .usage('--lock NAME [options] -- COMMAND...')
    .argument('<command...>', 'the command and its arguments')
    .addOption(
      new Option('--lock <name>', 'a lock to hold; repeat it to hold several together')
        .argParser(keysOf)
        .makeOptionMandatory(),
    )
    .option('--shared', 'hold the lock together with others that use --shared')
    .addOption(
      new Option('--permits <n/m>', 'hold N of M permits, together with others')
        .argParser(permitsOf)
        .conflicts('shared'),
    )
    .addOption(new Option('--wait <time>', 'how long to wait (default: no limit)').argParser(duration))
    .option('--skip-if-busy', 'do nothing and exit with status 0 if the lock is held by another process')
    .addOption(
      new Option(
        '--hold-at-least <time>',
        'keep the lock at least this long, even if the command is faster',
      ).argParser(duration),
    )
    .addOption(
      new Option(
        '--once-per <slot>',
        'do nothing if the command has succeeded for this slot: 1h or 1d is the hour or day in UTC, other text is a name',
      ).argParser(textOf),
    )
  addWorkOptions(run).action(async (command: readonly string[], options: RunOptions) => {
    // Rejects an invalid slot before anything is opened.
    if (options.oncePer !== undefined) slotAt('--once-per', options.oncePer, Date.now())
    const report = reporter(stderr, options.json === true)
    using interrupt = new Interrupt()
    const status = await withBox(
      options.engine,
      box => runUnder(box, command, options, { report, interrupt: interrupt.signal, stderr }),
      { creates: true, label: labelOf(command) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}

async function runUnder(
  box: Box,
  command: readonly string[],
  options: RunOptions,
  surroundings: Surroundings,
): Promise<number> {
  const { report } = surroundings
  const started = systemClock.now()
  const grant = await acquire(box, options, surroundings)
  if (!grant) return EXIT.fine
  const granted = systemClock.now()
  report('granted', { keys: grant.keys, token: String(grant.token), waited: Math.round(granted - started) })
  let least = 0
  try {
    const status = await runOnce(box, command, grant, options, surroundings)
    least = status === undefined ? 0 : (options.holdAtLeast ?? 0)
    return status ?? EXIT.fine
  } finally {
    await hold(grant, granted + least - systemClock.now(), surroundings)
  }
}

/** Acquires the locks; undefined with `--skip-if-busy` if they are held by another process. */
async function acquire(
  box: Box,
  { lock, shared = false, permits, wait, lease, skipIfBusy = false }: RunOptions,
  { report, interrupt, stderr }: Surroundings,
): Promise<Grant | undefined> {
  const claims = lock.map((key): Claim =>
    permits ? { key, mode: 'permits', ...permits } : { key, mode: shared ? 'shared' : 'exclusive' },
  )
  try {
    const terms = { wait: wait ?? (skipIfBusy ? 0 : undefined), lease, signal: interrupt }
    return await reportingWaits(box, lock, stderr, () => box.lock(...claims).acquire(terms))
  } catch (error) {
    interrupt.throwIfAborted()
    if (!skipIfBusy || !(error instanceof BusyError || error instanceof TimedOutError)) throw error
    report('skipped', { reason: 'busy' })
    return undefined
  }
}

/**
 * Runs the command and returns its status; undefined if it has succeeded for the slot before. A run that failed does
 * not count.
 */
async function runOnce(
  box: Box,
  command: readonly string[],
  grant: Grant,
  { oncePer, lock, fenceEnv, grace }: RunOptions,
  { report, interrupt }: Surroundings,
): Promise<number | undefined> {
  if (oncePer === undefined) return work(command, grant, { fenceEnv, grace }, report)
  const run = await box.runs().present(lock, '--once-per', oncePer)
  const slot = run.slot.name
  if (run.isDone) {
    report('skipped', { reason: 'done', slot })
    return undefined
  }
  interrupt.throwIfAborted()
  const status = await work(command, grant, { fenceEnv, grace }, report)
  if (status === EXIT.fine) {
    // The command has run, so its status must be reported.
    await run.done().catch((error: unknown) => report('unrecorded', failureOf(error, { slot })))
  }
  return status
}

/** Keeps the grant for `left` milliseconds, and releases it. */
async function hold(grant: Grant, left: number, { report, interrupt }: Surroundings): Promise<void> {
  await pause(left, systemClock, AbortSignal.any([interrupt, grant.signal]))
  try {
    await grant.release()
  } catch (error) {
    // The command has run, and a lock that can't be released expires with its lease.
    if (!(error instanceof LostError)) report('unreleased', failureOf(error))
    // A loss while the command ran has been reported; later it matters only to `--hold-at-least`.
    else if (left > 0) throw new CommandError(error.message, EXIT.lost)
  }
}
