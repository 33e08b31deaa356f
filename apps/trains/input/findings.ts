import type { Log } from '../log/log.js'

export interface Fault {
  /** The kind of the fault, the same for all lines with this fault. */
  readonly kind: string
  /** A description of the fault, with the value in the line. */
  readonly reason: string
}

export interface Finding extends Fault {
  readonly file: string
  /** The line's number in the file, counted from 1. */
  readonly line: number
}

/** The faults of one kind in one file. */
export interface FoundKind {
  readonly file: string
  readonly kind: string
  lines: number
  first: { readonly line: number; readonly reason: string }
}

export interface FindingsSummary {
  /** Number of dropped lines. */
  readonly rejected: number
  readonly rejections: readonly FoundKind[]
  /** Number of faults in lines that were used. */
  readonly repaired: number
  readonly repairs: readonly FoundKind[]
}

export interface FindingsListener {
  /** Receives a line that is dropped. Reading continues. */
  rejected(finding: Finding): void
  /** Receives a line that is used despite its fault. The reason says how. */
  repaired(finding: Finding): void
}

/** Counts the faults of the input. Logs the first of each kind at the level `warn`, and the others at `debug`. */
export class Findings implements FindingsListener {
  readonly #log: Log
  readonly #rejected = new Map<string, FoundKind>()
  readonly #repaired = new Map<string, FoundKind>()

  constructor(log: Log) {
    this.#log = log
  }

  rejected(finding: Finding): void {
    this.#add(this.#rejected, 'rejected', finding)
  }

  repaired(finding: Finding): void {
    this.#add(this.#repaired, 'repaired', finding)
  }

  get summary(): FindingsSummary {
    const [rejections, repairs] = [[...this.#rejected.values()], [...this.#repaired.values()]]
    return { rejected: countOf(rejections), rejections, repaired: countOf(repairs), repairs }
  }

  #add(kinds: Map<string, FoundKind>, event: string, { file, line, kind, reason }: Finding): void {
    const key = JSON.stringify([kind, file])
    const found = kinds.get(key)
    this.#log[found ? 'debug' : 'warn'](event, { file, line, reason })
    if (found) {
      found.lines++
      if (line < found.first.line) found.first = { line, reason }
    } else kinds.set(key, { file, kind, lines: 1, first: { line, reason } })
  }
}

function countOf(kinds: readonly FoundKind[]): number {
  return kinds.reduce((sum, { lines }) => sum + lines, 0)
}
