import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { withoutSecrets } from 'signalbox/reports'
import { Board } from './board/board.js'
import { systemClock } from './clock.js'
import { DeadLetterFile } from './dead-letters.js'
import { Findings } from './input/findings.js'
import { openSource } from './input/open-source.js'
import { InputError } from './input/source.js'
import { Log, logFile } from './log/log.js'
import { readOptions, type Settings } from './options.js'
import { Outages } from './outages.js'
import { exitStatusOf } from '../command-line.js'
import { checkWritable } from '../output-file.js'
import { EXIT } from './report/exit.js'
import { exitStatus } from './report/report.js'
import { findingsText, textReport } from './report/text-report.js'
import { Run } from './run.js'
import { forkWorkers } from './supervisor/worker-process.js'
import { openTracker } from './tracker.js'

/**
 * Executes a command line of the tracker and returns the exit status. The caller must then end the process, because
 * standard input may still be open.
 */
export async function trains(args: readonly string[]): Promise<number> {
  return exitStatusOf(
    async () => {
      const settings = readOptions(args)
      return track(settings)
    },
    { usage: EXIT.badInput.status, failed: EXIT.aborted.status },
  )
}

async function track(settings: Settings): Promise<number> {
  const { json } = settings
  if (json !== undefined) checkWritable(json)
  const deadLetters = new DeadLetterFile(settings.deadLetters)
  deadLetters.check()
  const sink = settings.log === undefined ? process.stderr : logFile(settings.log)
  const log = new Log(sink, settings.logLevel)
  const findings = new Findings(log)
  const source = await openSource(settings.input, findings).catch((error: unknown) => {
    process.stderr.write(findingsText(findings.summary).join('\n'))
    throw error
  })
  const outages = new Outages(settings.engineWait, log, systemClock)
  // Opened without retries, because the URL of an engine that was never reachable may be misspelt.
  const tracker = await openTracker(settings.engine, 'trains supervisor', settings.use, outages)
  let board: Board | undefined
  try {
    if (!(await tracker.claimRun())) {
      throw new InputError(
        `another run uses ${withoutSecrets(settings.engine)}: wait until it ends, or pass another --engine`,
      )
    }
    if (settings.watch !== undefined) {
      board = await Board.open(settings.watch, { source, settings, locks: () => tracker.locks() })
      process.stdout.write(`watch the run at ${board.url}\n`)
      if (settings.wait) {
        process.stdout.write('it begins when you open the page; with --no-wait, it begins at once\n')
        if (!(await isViewed(board))) return EXIT.interrupted.status
      }
    }
    const startWorker = forkWorkers(new URL('./worker.js', import.meta.url))
    const output = process.stdout
    const parts = { settings, source, findings, tracker, startWorker, deadLetters, log, output, board }
    const run = await Run.prepare(parts)
    const ignoreSignals = stopOnSignals(run)
    output.write(
      `${source.description}; ${settings.processes} workers on ${withoutSecrets(settings.engine)}\n`,
    )
    const report = await run.deliver()
    if (!report) return EXIT.interrupted.status
    output.write(textReport(report, source.locationNames, deadLetters.path))
    if (settings.json !== undefined) writeFileSync(settings.json, `${JSON.stringify(report, undefined, 2)}\n`)
    if (board && !report.interrupted) {
      ignoreSignals()
      output.write(`${board.url} shows the result until you press Ctrl-C\n`)
      await interrupted()
    }
    return exitStatus(report, settings.strict)
  } finally {
    await board?.close()
    await tracker.close()
  }
}

/** Resolves with true when a viewer opens the page, or with false on SIGINT or SIGTERM. */
async function isViewed(board: Board): Promise<boolean> {
  const decided = new AbortController()
  try {
    return await Promise.race([
      board.viewed().then(() => true),
      interrupted(decided.signal).then(() => false),
    ])
  } finally {
    decided.abort()
  }
}

/** Resolves on SIGINT or SIGTERM. Aborting `signal` removes the listeners. */
async function interrupted(signal?: AbortSignal): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'].map(name => once(process, name, { signal }))
  await Promise.race(signals).catch(() => undefined)
}

/**
 * Stops the run on the first signal, so that it finishes the messages that it has read. Aborts it on the second.
 * @returns a function that removes the listeners of signals.
 */
function stopOnSignals(run: Run): () => void {
  let signals = 0
  const stop = () => {
    if (++signals === 1) {
      process.stderr.write('\nstopping: finishing the messages that were read; press Ctrl-C again to abort\n')
      run.stop()
    } else {
      run.abandon()
      process.exit(EXIT.interrupted.status)
    }
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return () => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
