import "./styles/fonts.css";
import "./styles/colours.css";
import "./styles/style.css";
import "./styles/controls.css";
import "./styles/panes.css";
import "./styles/pages.css";
import "./styles/pictures.css";
import "./styles/extra.css";
import { render } from "preact";
import { App } from "./app";
import { goOn } from "./examples/player";
import { followAddress, poll, registered } from "./state/server_state";
import { minimise } from "./state/solution_store";

followAddress();
render(<App />, document.getElementById("console")!);
poll();
minimise(() => registered.value);
void goOn();
