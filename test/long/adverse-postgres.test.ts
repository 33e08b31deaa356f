import { postgres } from '../contract/postgres-fixture.js'
import { thaw } from '../../packages/conformance/src/thaw.js'
import { adverseSuite, contractParts } from '../contract/suite.js'

adverseSuite(postgres)
contractParts(postgres, thaw)
