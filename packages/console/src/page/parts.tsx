import type { JSX } from 'preact'
import { printable, type Claim } from 'signalbox/reports'
import type { Who } from '../messages.js'
import { hashOf } from './route.js'
import { modeOf, nameOf, placeOf } from './text.js'

/** A session, as a link to the keys that it holds and awaits. */
export function SessionLink({ who }: { readonly who: Who }): JSX.Element {
  const name = nameOf(who)
  return (
    <span class="who">
      {who.session === '' ? (
        <span class="name">{name}</span>
      ) : (
        <a class="name" href={hashOf({ view: 'session', session: who.session })}>
          {name}
        </a>
      )}
      <span class="place">{placeOf(who)}</span>
    </span>
  )
}

/** A key, as a link to its holders, waiters and timeline. */
export function KeyLink({ name }: { readonly name: string }): JSX.Element {
  return (
    <a class="key" href={hashOf({ view: 'key', key: name })}>
      {printable(name)}
    </a>
  )
}

/** The mode of a claim. */
export function Mode({ claim }: { readonly claim: Claim }): JSX.Element {
  return <span class="mode">{modeOf(claim)}</span>
}

/** The number of characters of a text that are not shown; nothing if the text is complete. */
export function Cut({ shown, length }: { readonly shown: number; readonly length: number }): JSX.Element {
  return shown < length ? (
    <span class="cut">… {(length - shown).toLocaleString('en')} more characters</span>
  ) : (
    <></>
  )
}
