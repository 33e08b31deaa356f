import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { PROMISES, type PromiseId } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count } from '../page-kit/browser/text.js'
import { RequestError } from '../page-kit/browser/event-stream.js'
import { useShared } from './context.js'

interface Finding {
  readonly id: string
  readonly promises: readonly PromiseId[]
  readonly how: string
  readonly fix: string
}

interface Diagnosis {
  readonly facts: readonly string[]
  readonly findings: readonly Finding[]
}

/** The findings of the doctor, which examines the engine on request. */
export function DoctorView(): JSX.Element {
  const { connection } = useShared()
  const [isBusy, setBusy] = useState(false)
  const [diagnosis, setDiagnosis] = useState<Diagnosis>()
  const [failure, setFailure] = useState<string>()
  const examine = async (): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    try {
      setDiagnosis((await connection.post('doctor', {})) as Diagnosis)
    } catch (error) {
      setFailure(error instanceof RequestError ? error.message : String(error))
    }
    setBusy(false)
  }
  return (
    <>
      <Heading>Doctor</Heading>
      <p class="summary">Checks whether the engine can be used, and whether its settings weaken a promise.</p>
      <button type="button" disabled={isBusy} onClick={() => void examine()}>
        {isBusy ? 'Examining …' : 'Examine the engine'}
      </button>
      <div aria-live="polite">
        {failure !== undefined && <p class="failure">{failure}</p>}
        {diagnosis && <Report diagnosis={diagnosis} />}
      </div>
    </>
  )
}

function Report({ diagnosis: { facts, findings } }: { readonly diagnosis: Diagnosis }): JSX.Element {
  return (
    <>
      {findings.length === 0 ? (
        <Empty>No problems found</Empty>
      ) : (
        <section aria-labelledby="findings">
          <h2 id="findings">{count(findings.length, 'finding')}</h2>
          <ul class="cards">
            {findings.map(({ id, promises, how, fix }) => (
              <li class="card warned" key={id}>
                <h3>{id}</h3>
                <p>{how}</p>
                {promises.length > 0 && <p class="hint">Weakens: {promises.map(wordsOf).join('; ')}</p>}
                <p>
                  <strong>Fix:</strong> {fix}
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
      {facts.length > 0 && (
        <section aria-labelledby="facts">
          <h2 id="facts">Facts</h2>
          <ul class="facts">
            {facts.map(fact => (
              <li key={fact}>{fact}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

/** A promise in words, with the number under which the page on guarantees describes it. */
function wordsOf(promise: PromiseId): string {
  return `${PROMISES[promise]} (${promise})`
}
