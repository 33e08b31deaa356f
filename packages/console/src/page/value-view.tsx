import type { JSX } from 'preact'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { timeOf } from '../page-kit/browser/text.js'
import type { ValueView as Found } from '../messages.js'
import { Cut } from './parts.js'
import { hashOf } from './route.js'
import { useAnswer } from './use-answer.js'

export function ValueView({ store, name }: { readonly store: string; readonly name: string }): JSX.Element {
  const [answer, ask] = useAnswer<Found>('value', { store, key: name })
  return (
    <>
      <p class="crumb">
        <a href="#/values">Values</a> ·{' '}
        <a class="key" href={hashOf({ view: 'values', store, prefix: '', after: '' })}>
          {printable(store)}
        </a>
      </p>
      <Heading>
        <span class="key">{printable(name)}</span>
      </Heading>
      <div aria-live="polite">
        {answer?.failure !== undefined ? (
          <p class="failure">{answer.failure}</p>
        ) : answer?.content.found === false ? (
          <Empty>
            {printable(store)} has no key {printable(name)}.
          </Empty>
        ) : (
          answer?.content.found === true && (
            <section class="card value" aria-label="Value">
              <h2>
                <span class="mode">version {answer.content.version}</span>
              </h2>
              <pre tabIndex={0} aria-label="JSON">
                {answer.content.json.split('\n').map(printable).join('\n')}
                <Cut shown={answer.content.json.length} length={answer.content.length} />
              </pre>
              <p class="hint">Read at {timeOf(answer.at)}. It does not follow later changes.</p>
            </section>
          )
        )}
      </div>
      {answer && (
        <button type="button" onClick={ask}>
          Read again
        </button>
      )}
    </>
  )
}
