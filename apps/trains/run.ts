import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Board, RunState } from './board/board.js'
import { withoutSecrets } from '../../src/secrets.js'
import { systemClock } from './clock.js'
import type { DeadLetterFile } from './dead-letters.js'
import { changesOf, locationKey, type LocationCounts } from './domain/location.js'
import type { Findings } from './input/findings.js'
import { paced } from './input/pacing.js'
import type { MessageSource, TimedMessage } from './input/source.js'
import type { Log } from './log/log.js'
import type { Message } from './messages/message.js'
import { registry } from './messages/registry.js'
import type { Settings } from './options.js'
import { PeakMemory } from './peak-memory.js'
import { IdDigest, loadProgress, saveProgress, type Progress } from './progress.js'
import type { WorkerSettings } from './protocol.js'
import { reasonOf } from './reason.js'
import { compareLocations, countsOf } from './report/comparison.js'
import { ProgressDisplay } from './report/progress-display.js'
import type { Report } from './report/report.js'
import { Tally } from './report/tally.js'
import { afterMark, checkResumable } from './resume.js'
import { SerialResult, type SerialMessage } from './serial.js'
import { planKills } from './supervisor/kill-plan.js'
import { Kills } from './supervisor/kills.js'
import { Supervisor } from './supervisor/supervisor.js'
import type { StartWorker } from './supervisor/worker-process.js'
import type { Tracker } from './tracker.js'
import { ALREADY_APPLIED } from './worker/message-processor.js'

/**
 * How often the progress is stored, in milliseconds. So much is delivered again when the supervisor itself is killed.
 */
const SAVED_EVERY = 1000

/** How many differing locations the report names. */
const NAMED = 10

/** How many locations are read at a time for the report. */
const READ_TOGETHER = 64

/** What a run works with. */
export interface RunParts {
  readonly settings: Settings
  readonly source: MessageSource
  /** What was found in the input; more is added while it is read. */
  readonly findings: Findings
  readonly tracker: Tracker
  readonly startWorker: StartWorker
  readonly deadLetters: DeadLetterFile
  readonly log: Log
  readonly output: NodeJS.WriteStream
  /** Shows the run; undefined where it is not to be shown. */
  readonly board: Board | undefined
}

/** One run of the tracker: from the input to the report. */
export class Run {
  readonly #parts: RunParts
  /** What the interrupted run that this one resumes had done; undefined for a run of its own. */
  readonly #earlier: Progress | undefined
  readonly #name: string
  readonly #supervisor: Supervisor
  readonly #kills: Kills
  readonly #serial = new SerialResult()
  readonly #digest = new IdDigest()
  readonly #tally = new Tally()
  readonly #givenUp: number[] = []
  /** All locations that any message names, also those where nothing must have happened. */
  readonly #mentioned = new Set<string>()
  readonly #stop = new AbortController()
  readonly #memory = new PeakMemory()
  #done = 0
  #saving: Promise<void> | undefined

  private constructor(parts: RunParts, earlier: Progress | undefined) {
    const { settings, source, tracker, startWorker, deadLetters, log, board } = parts
    this.#parts = parts
    this.#earlier = earlier
    // Every id and value has it, so it is short.
    this.#name = earlier?.run ?? randomBytes(9).toString('base64url')
    this.#kills = new Kills(planKills(settings.kill, source.total))
    this.#supervisor = new Supervisor({
      processes: settings.processes,
      // At least two, so that they contend for locks.
      atOnce: Math.max(availableParallelism(), 2),
      startWorker,
      settingsOf: worker => this.#workerSettings(worker),
      revoke: session => tracker.revoke(session),
      kills: this.#kills,
      first: earlier?.mark ?? 0,
      onDone: (message, sequence, givenUp) => this.#note(message, sequence, givenUp),
      onAcknowledged: acknowledgement => this.#tally.add(acknowledgement),
      onSettled: board && ((message, event) => board.settled(message, event)),
      placeOf: message => registry.placeOf(message),
      keepDeadLetter: letter => deadLetters.keep(letter),
      log,
    })
  }

  /**
   * Prepares a run, from nothing or from where the last one on this engine was interrupted.
   * @throws InputError when the interrupted run read something else, or is too old; what the engine throws.
   */
  static async prepare(parts: RunParts): Promise<Run> {
    const { settings, source, tracker, deadLetters, log } = parts
    const earlier = settings.resume ? await loadProgress(tracker) : undefined
    if (earlier) {
      checkResumable(earlier, source.description)
      log.info('resumed', { run: earlier.run, after: earlier.mark })
    } else {
      if (settings.resume) log.warn('nothing to resume', { engine: withoutSecrets(settings.engine) })
      deadLetters.clear()
    }
    const run = new Run(parts, earlier)
    if (!earlier) await run.#save()
    return run
  }

  /**
   * Delivers all messages, and says what has come of it; undefined when it was stopped before it had caught up with
   * the run that it resumes, and so has done nothing.
   * @throws Error when the run breaks off.
   */
  async deliver(): Promise<Report | undefined> {
    const { settings, source, output, board } = this.#parts
    const supervisor = this.#supervisor
    board?.begin(() => this.#state())
    await supervisor.start()
    const display = new ProgressDisplay(output, source.total, () => this.#doneSoFar())
    const saving = setInterval(() => this.#saveNowAndThen(), SAVED_EVERY)
    const begun = performance.now()
    display.start()
    let complete: boolean
    try {
      complete = await supervisor.deliver(this.#messages())
    } catch (error) {
      supervisor.abandon()
      throw error
    } finally {
      clearInterval(saving)
      display.stop()
    }
    const seconds = (performance.now() - begun) / 1000
    await supervisor.finish()
    const kills = this.#kills.done.length
    if (kills < settings.kill) this.#parts.log.warn('fewer kills than requested', { kills })
    if (this.#catchingUp()) return undefined
    await this.#saving
    await this.#save()
    const report = this.#report(complete, seconds, await this.#storedLocations())
    board?.end(report)
    return report
  }

  /** Reads no further messages; the run ends as soon as those already read are done. */
  stop(): void {
    this.#stop.abort()
    this.#supervisor.stop()
  }

  /** Ends at once; what is not acknowledged by now is delivered again by a run that resumes this one. */
  abandon(): void {
    this.#supervisor.abandon()
  }

  #messages(): AsyncIterable<readonly TimedMessage[]> {
    const { settings, source, board } = this.#parts
    const all = source.batches()
    const messages = this.#earlier
      ? afterMark(all, this.#earlier, this.#digest, (message, sequence, givenUp) => {
          if (!givenUp) {
            this.#tally.skip()
            board?.settled(message, ALREADY_APPLIED)
          }
          this.#note(message, sequence, givenUp)
        })
      : all
    const speed = settings.input.kind === 'timetable' ? settings.input.speed : undefined
    return speed === undefined ? messages : paced(messages, speed, systemClock, this.#stop.signal)
  }

  /** Notes, in the order of the stream, that a message is done: this is what the serial result is made from. */
  #note(message: Message, sequence: number, givenUp: boolean): void {
    this.#done = sequence + 1
    this.#digest.add(message.id)
    if (givenUp) this.#givenUp.push(sequence)
    else this.#serial.apply(message)
    const { location, to } = message as SerialMessage
    if (location !== undefined) this.#mentioned.add(location)
    if (to !== undefined) this.#mentioned.add(to)
  }

  /** Whether the run that this one resumes has come further than this one has. */
  #catchingUp(): boolean {
    return this.#done < (this.#earlier?.mark ?? 0)
  }

  #doneSoFar(): number {
    return (this.#earlier?.mark ?? 0) + this.#supervisor.acknowledged
  }

  #state(): RunState {
    const kills = this.#kills.done
    return {
      messages: this.#doneSoFar(),
      workers: this.#supervisor.perWorker.map(({ worker, messages, replaced }) => ({
        worker,
        isReady: this.#supervisor.isReady(worker),
        messages,
        kills: kills.filter(kill => kill.worker === worker).length,
        replaced,
      })),
    }
  }

  #workerSettings(worker: number): WorkerSettings {
    const { engine, engineWait, limits, use, log, logLevel } = this.#parts.settings
    return { worker, engine, run: this.#name, limits, engineWait, use, logFile: log, logLevel }
  }

  #save(): Promise<void> {
    const { source, tracker } = this.#parts
    return saveProgress(tracker, {
      run: this.#name,
      input: source.description,
      mark: this.#done,
      digest: this.#digest.value,
      givenUp: [...this.#givenUp],
      at: Date.now(),
    })
  }

  #saveNowAndThen(): void {
    // Two at the same time could arrive in the wrong order.
    if (this.#saving || this.#catchingUp()) return
    this.#saving = this.#save()
      .catch((error: unknown) => this.#parts.log.warn('progress not stored', { reason: reasonOf(error) }))
      .finally(() => (this.#saving = undefined))
  }

  async #storedLocations(): Promise<ReadonlyMap<string, LocationCounts>> {
    const store = this.#parts.tracker.store(this.#name)
    const found = new Map<string, LocationCounts>()
    const ids = [...this.#mentioned].sort()
    for (let begin = 0; begin < ids.length; begin += READ_TOGETHER) {
      const some = ids.slice(begin, begin + READ_TOGETHER)
      const stored = await Promise.all(some.map(id => store.get(locationKey(id))))
      for (const [index, id] of some.entries()) {
        const location = stored[index] as LocationCounts | undefined
        if (location) found.set(id, countsOf(location))
      }
    }
    return found
  }

  #report(complete: boolean, seconds: number, locations: ReadonlyMap<string, LocationCounts>): Report {
    const { settings, source, findings } = this.#parts
    const differences = compareLocations(this.#serial.locations, locations)
    const waits = this.#tally.lockWaits
    return {
      engine: withoutSecrets(settings.engine),
      input: source.description,
      processes: settings.processes,
      days: source.days ?? null,
      messages: this.#done,
      resumedAfter: this.#earlier?.mark ?? 0,
      interrupted: !complete,
      seconds,
      perSecond: this.#supervisor.acknowledged / seconds,
      ...changesOf(locations.values()),
      ignored: this.#tally.ignored(locations.values()),
      ...findings.summary,
      deadLettered: this.#givenUp.length,
      redelivered: this.#supervisor.redelivered,
      kills: this.#kills.done,
      lockWaitMs: { p50: waits.percentile(0.5) ?? null, p99: waits.percentile(0.99) ?? null },
      serial: this.#serial.totals,
      matchesSerial: differences.length === 0,
      differences: differences.slice(0, NAMED),
      locations: Object.fromEntries(locations),
      perWorker: this.#supervisor.perWorker,
      peakMemory: this.#memory.end(),
    }
  }
}
